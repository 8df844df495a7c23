import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { API, type Symbol as CheckedSymbol, type Project, SymbolFlags } from "typescript/unstable/sync";
import { EntryDeclarations } from "./entry-declarations.ts";
import { findAliases } from "./find-aliases.ts";

/**
 * The declarations that npm gets, into the folder named: one file for each entry point, with every type written out.
 * What is inferred from schemas costs a compiler seconds and a gigabyte, in every program and every editor.
 */
const root = join(import.meta.dirname, "..", "..");
const [target] = process.argv.slice(2);
if (target === undefined) throw new Error("usage: main.ts FOLDER");

/** As `exports` in package.json names them. */
const entries = {
  index: "src/index.ts",
  client: "src/client/connect.ts",
  conformance: "src/suites/conformance/describe-runtime.ts",
  attack: "src/suites/attack/run-attacks.ts",
};

const api = new API({ cwd: root });
try {
  const [project] = api.updateSnapshot({ openProjects: [join(root, "tsconfig.build.json")] }).getProjects();
  if (project === undefined) throw new Error("TypeScript opens no project");
  const aliases = findAliases(project, join(root, "src"));
  mkdirSync(target, { recursive: true });
  for (const [name, path] of Object.entries(entries)) {
    const declarations = new EntryDeclarations(project, { sources: join(root, "src"), aliases });
    writeFileSync(join(target, `${name}.d.ts`), declarations.write(exportsOf(project, join(root, path))));
  }
} finally {
  api.close();
}

function exportsOf(project: Project, path: string): { name: string; symbol: CheckedSymbol; isType: boolean }[] {
  const file = project.program.getSourceFile(path);
  const module = file === undefined ? undefined : project.checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`${path} is not a module`);
  return project.checker.getExportsOfModule(module).map((symbol) => ({
    name: symbol.name,
    symbol: symbol.flags & SymbolFlags.Alias ? project.checker.getAliasedSymbol(symbol) : symbol,
    isType: isTypeOnly(project, symbol),
  }));
}

/** `export type { A }`, or `export { type A }`. */
function isTypeOnly(project: Project, symbol: CheckedSymbol): boolean {
  interface Export {
    isTypeOnly?: boolean;
    parent?: Export;
  }
  const node = symbol.declarations[0]?.resolve(project) as Export | undefined;
  return node?.isTypeOnly === true || (Boolean(symbol.flags & SymbolFlags.Alias) && node?.parent?.parent?.isTypeOnly === true);
}
