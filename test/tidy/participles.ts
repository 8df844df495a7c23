import { parseAst } from "rolldown/parseAst";
import { isTest, type Rule } from "./rules.ts";

/** Participles that are unclear as names: they do not say who does what to whom. */
const participles =
  "asked|begun|brought|followed|found|given|gone|heard|kept|listed|made|meant|numbered|placed|said|seen|sent|shown|taken|told".split("|");
/** Those that are clear as values: what a lookup found, what was counted as seen. */
const clearValues = ["found", "listed", "seen", "sent"];
/** Participles that are clear as values, but not as functions: `checked()` may check, return an error, or make an event. */
const functionParticiples = `
  abandoned aborted accepted added admitted announced answered applied audited authenticated bound bounded broken cached
  cancelled changed checked chosen claimed collected coloured concluded damaged decided declared decoded decompressed
  delegated detected done edited escaped exceeded executed extended failed fenced filled finished framed guarded
  happened hashed headed installed interleaved interrupted judged killed labelled layered left malformed mapped masked
  networked normalised pasted paused pooled quoted reached redacted redirected renamed repaired replayed requested
  retried routed scanned searched settled shimmed spent staged streamed styled submitted superseded toned typed
  unauthenticated unescaped unexpected unfinished unified unlimited unquoted unsupported untrusted verified viewed
`
  .trim()
  .split(/\s+/);

/** Without `done`, the name of callbacks in the API of Node's streams. */
const methodParticiples = new Set([...participles, ...functionParticiples].filter((name) => name !== "done"));
/** Methods that keep such a name, by the path that their files begin with. */
const methodExceptions: readonly { path: string; names: readonly string[]; reason: string }[] = [
  { path: "src/sandbox/runtime.ts", names: ["pooled"], reason: "public: `Runtime` is the interface of custom runtimes" },
  { path: "src/runtimes/", names: ["pooled"], reason: "implements `Runtime`" },
  { path: "src/station/sessions/session-verbs.ts", names: ["applied"], reason: "public: `sessions.applied` is a route of the API" },
  { path: "src/verbs/", names: ["audited"], reason: "a field of the route tables, beside `reaches` and `shownOnce`" },
];

const functions = [
  /\bfunction\*? (\w+)\s*[(<]/g,
  /\b(?:const|let) (\w+)(?:: [^=\n]+)? = (?:async )?(?:<[^>\n]*>)?\([^()\n]*\)(?:: [^=\n]+)? =>/g,
];
const values = /\b(?:const|let) (\w+)\b/g;

/** A function is named with a verb, a value with a noun, and a file after its content: `printSpec`, not `told`. */
export const namesAreNoParticiples: Rule = (files) =>
  files
    .filter(({ path }) => /^(src|console\/src)\/.*\.tsx?$/.test(path))
    .flatMap(({ path, text }) => {
      const named = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = ""]) => name);
      const stem = (path.split("/").at(-1) ?? "").replace(/\..*$/, "");
      const names = [
        ...[stem].filter((name) => !isTest(path) && participles.includes(name)).map((name) => `file: ${name}`),
        ...functions
          .flatMap(named)
          .filter((name) => !isTest(path) && [...participles, ...functionParticiples].includes(name))
          .map((name) => `function: ${name}`),
        ...(isTest(path) ? [] : methodsIn(path, text)).map((name) => `method: ${name}`),
        ...named(values)
          .filter((name) => participles.includes(name) && !clearValues.includes(name))
          .map((name) => `value: ${name}`),
      ];
      return [...new Set(names)].map((name) => ({ path, what: `a bare participle as the name of a ${name}` }));
    });

interface Node {
  type: string;
  [key: string]: unknown;
}

/**
 * Returns the participles that name methods: of classes, interfaces and object literals, and properties that are
 * functions. Getters are values.
 */
function methodsIn(path: string, text: string): string[] {
  if (!(text.match(/\w+(?=\??(?:[(<:]| =))/g) ?? []).some((name) => methodParticiples.has(name))) return [];
  const allowed = methodExceptions.flatMap((exception) => (path.startsWith(exception.path) ? exception.names : []));
  const names: string[] = [];
  const visit = (node: Node): void => {
    const name = isMethod(node) ? (node.key as { name?: string }).name : undefined;
    if (name !== undefined && methodParticiples.has(name) && !allowed.includes(name)) names.push(name);
    for (const child of Object.values(node).flat()) {
      if (typeof child === "object" && child !== null && "type" in child) visit(child as Node);
    }
  };
  visit(parseAst(text, { lang: path.endsWith("x") ? "tsx" : "ts" }, path) as unknown as Node);
  return names;
}

function isMethod({ type, kind, computed, value, typeAnnotation }: Node): boolean {
  if (computed === true || kind === "get" || kind === "set") return false;
  if (["MethodDefinition", "TSAbstractMethodDefinition", "TSMethodSignature"].includes(type)) return true;
  if (!["Property", "PropertyDefinition", "TSPropertySignature"].includes(type)) return false;
  const declared = (typeAnnotation as { typeAnnotation: Node } | null | undefined)?.typeAnnotation.type;
  const assigned = (value as Node | null | undefined)?.type ?? "";
  return declared === "TSFunctionType" || ["ArrowFunctionExpression", "FunctionExpression"].includes(assigned);
}
