import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

/**
 * Splits one file of the bundle into a script, whose compiled form scripts/kept-script.ts stores, and a module with the
 * old name, which runs the script. The script is a function that takes the module's imports and returns its exports.
 * Throws for an export that may change after the module has run, because the script returns its exports only once.
 */
export function keepCompiled(dir: string, name: string): void {
  const modulePath = join(dir, `${name}.mjs`);
  const code = readFileSync(modulePath, "utf8");
  const imports: string[] = [];
  const importedNames: string[] = [];
  const exported: { local: string; as: string }[] = [];
  const variables = new Set<string>();
  const cuts: { start: number; end: number }[] = [];
  const program = parseAst(code);
  for (const node of program.body) {
    if (node.type === "ImportDeclaration") {
      imports.push(code.slice(node.start, node.end));
      importedNames.push(...node.specifiers.map(({ local }) => local.name));
      cuts.push(node);
    } else if (node.type === "ExportNamedDeclaration" && node.declaration === null && node.source === null) {
      for (const { local, exported: exportName } of node.specifiers) exported.push({ local: nameOf(local), as: nameOf(exportName) });
      cuts.push(node);
    } else if (node.type.startsWith("Export")) throw new Error(`${name}: an export of an unexpected kind: ${node.type}`);
    else if (node.type === "VariableDeclaration" && node.kind !== "const") {
      for (const { id } of node.declarations) if (id.type === "Identifier") variables.add(id.name);
    }
  }
  const assigned = assignedIn(program);
  const changing = exported.filter(({ local }) => variables.has(local) && assigned.has(local));
  if (changing.length > 0) throw new Error(`${name}: exports that may change: ${changing.map(({ local }) => local).join(", ")}`);
  // Keeps every line in its place, so that source maps stay correct.
  const body = cuts.reduceRight(
    (text, { start, end }) => text.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, "") + text.slice(end),
    code,
  );
  const script = `(function (${importedNames.join(", ")}) { "use strict"; ${body}\nreturn [${exported.map(({ local }) => local).join(", ")}];\n})`;
  const sum = createHash("sha256").update(script).digest("hex").slice(0, 16);
  writeFileSync(join(dir, `${name}.js`), script);
  const call = `runScript({ dir: import.meta.dirname, name: ${JSON.stringify(name)}, sum: ${JSON.stringify(sum)} }, [${importedNames.join(", ")}])`;
  writeFileSync(
    modulePath,
    [
      ...imports,
      'import { runScript } from "./kept-script.mjs";',
      `const [${exported.map((_, at) => `e${at}`).join(", ")}] = ${call};`,
      `export { ${exported.map(({ as }, at) => `e${at} as ${as}`).join(", ")} };`,
      "",
    ].join("\n"),
  );
}

function nameOf(node: { type: string } & ({ name: string } | { value: unknown })): string {
  return "name" in node ? node.name : JSON.stringify(node.value);
}

/** Returns the names that are assigned in any scope. */
function assignedIn(node: object, found = new Set<string>()): Set<string> {
  const { type, left, argument } = node as { type?: string; left?: { name?: string }; argument?: { name?: string } };
  const target = type === "AssignmentExpression" ? left : type === "UpdateExpression" ? argument : undefined;
  if (target?.name !== undefined) found.add(target.name);
  for (const child of Object.values(node)) if (typeof child === "object" && child !== null) assignedIn(child, found);
  return found;
}
