import { parseAst } from "rolldown/parseAst";
import { isTest, type Rule, type SourceFile, type Violation } from "./rules.ts";

/** A function with more branches is hard to follow: split it, or turn it into a table. */
const BRANCHES_MAX = 15;

interface Exception {
  /** The file and the function, as `branchesOf` names it. */
  function: `${string} ${string}`;
  branches: number;
  reason: string;
}

interface Counted {
  name: string;
  branches: number;
}

/**
 * Functions above the limit. The table may only shrink: an entry that is unnecessary or too generous is a violation.
 */
export const branchExceptions: readonly Exception[] = [
  { function: "console/src/pages/run/item-view.tsx ItemView", branches: 25, reason: "one view for each kind of item" },
  { function: "console/src/pages/run/run-actions.tsx RunActions", branches: 16, reason: "one button for each state of a run" },
  { function: "console/src/pages/run/run-html.ts bodyHtml", branches: 16, reason: "one text for each kind of item" },
  { function: "console/src/pages/sandbox/network-lines.ts lineOf", branches: 19, reason: "one text for each kind of event" },
  { function: "console/src/pages/workflow/step-tree.ts wordsOf", branches: 18, reason: "one text for each kind of step" },
  {
    function: "console/src/parts/ansi-spans.ts changeBy",
    branches: 23,
    reason: "one case for each code of the standard, or kind of event",
  },
  { function: "console/src/parts/selection.ts step", branches: 21, reason: "one case for each way to select" },
  { function: "src/agent/call-model.ts callModel", branches: 16, reason: "every way in which a call can end" },
  {
    function: "src/agent/shell-pipelines.ts pipelinesOf",
    branches: 29,
    reason: "a scanner: one branch for each character that a shell reads specially",
  },
  { function: "src/agent/tools/apply-hunks.ts applyHunks", branches: 19, reason: "a parser: one branch for each kind of line" },
  { function: "src/agent/tools/patch-format.ts parseEnvelope", branches: 17, reason: "a parser: one branch for each kind of line" },
  { function: "src/agent/tools/unified-diff.ts countedEnd", branches: 18, reason: "a parser: one branch for each kind of line" },
  { function: "src/cli/chat/prompt.ts pressNamed", branches: 23, reason: "one case for each key" },
  { function: "src/cli/network/network-view.ts networkLine", branches: 20, reason: "one text for each kind of event" },
  { function: "src/cli/options/arguments.ts parseArguments", branches: 19, reason: "a parser: one branch for each form of an option" },
  {
    function: "src/cli/options/parse-sandbox-options.ts workspaceFrom",
    branches: 18,
    reason: "options that exclude each other, pair by pair",
  },
  { function: "src/cli/runs/ps.ts ps", branches: 16, reason: "the whole command, from options to output" },
  { function: "src/cli/sessions/changes-commands.ts diff", branches: 17, reason: "one output for each combination of options" },
  {
    function: "src/client/request.ts untilAnswered",
    branches: 24,
    reason: "every way in which a request can fail, in the order in which they matter",
  },
  { function: "src/network/address/addresses.ts embeddedIpv4", branches: 17, reason: "one range for each way to embed an address" },
  { function: "src/network/egress/denial.ts explain", branches: 17, reason: "one text for each reason to deny" },
  {
    function: "src/network/gateway/provider-reach.ts fieldsReach",
    branches: 20,
    reason: "one rule for each field that a provider may follow",
  },
  { function: "src/network/http/answer.ts #onHead", branches: 16, reason: "one case for each kind of answer that changes the connection" },
  { function: "src/network/http/head.ts checkFraming", branches: 17, reason: "one check for each rule of message framing (RFC 9112)" },
  { function: "src/network/http/head.ts requestTarget", branches: 18, reason: "one check for each form of a request target (RFC 9112)" },
  { function: "src/network/mirror/registries/debian.ts route", branches: 16, reason: "one pattern for each path of the registry" },
  { function: "src/runtimes/docker/create-sandbox.ts planSandbox", branches: 17, reason: "the fields of a container, one by one" },
  { function: "src/runtimes/fake/shell.ts runCommand", branches: 20, reason: "one case for each program that the fake shell knows" },
  {
    function: "src/runtimes/fake/shell.ts tokenize",
    branches: 27,
    reason: "a scanner: one branch for each character that a shell reads specially",
  },
  {
    function: "src/runtimes/oci/launch/launch-failure.ts failureOf",
    branches: 22,
    reason: "one case for each failure that a runtime reports",
  },
  { function: "src/runtimes/oci/template/layer-unpacker.ts apply", branches: 18, reason: "one case for each kind of entry in an archive" },
  { function: "src/station/guardian/ended-call.ts applyEndedCall", branches: 21, reason: "one rule for each outcome of a call" },
  { function: "src/station/pull-requests/ship-target.ts shipTarget", branches: 16, reason: "one check for each field of a target" },
  { function: "src/station/runs/start-run.ts createRequestedRun", branches: 22, reason: "the defaults of a run, field by field" },
  { function: "src/station/specs/spec-verbs.ts executionEvents", branches: 17, reason: "one outcome for each state of a spec" },
  { function: "src/workflow/advance.ts advanceKind", branches: 18, reason: "one case for each kind of step" },
  { function: "src/workflow/advance.ts resolveInput", branches: 20, reason: "one case for each kind of step" },
  { function: "src/workflow/join.ts joinBranches", branches: 17, reason: "one case for each outcome of a branch" },
  { function: "src/workflow/validate.ts problemsWithMeaning", branches: 18, reason: "one check for each rule of a definition" },
  { function: "src/workspace/render-diff.ts renderSection", branches: 30, reason: "one line for each part of the header that git writes" },
  { function: "src/workspace/text-diff.ts backtrack", branches: 16, reason: "the inner loop of the diff, which is measured" },
];

export const fewBranches: Rule = (files) => withFewBranches(files, branchExceptions);

function withFewBranches(files: readonly SourceFile[], exceptions: readonly Exception[]): Violation[] {
  const sources = files.filter(({ path }) => /^(src|console\/src|bench|guest|scripts)\/.*\.tsx?$/.test(path) && !isTest(path));
  const counted = new Map<string, number>(
    sources.flatMap((file) => branchesOf(file).map(({ name, branches }) => [`${file.path} ${name}`, branches])),
  );
  const allowed = new Map<string, number>(exceptions.map((each) => [each.function, each.branches]));
  const above = [...counted].filter(([name, branches]) => branches > Math.max(BRANCHES_MAX, allowed.get(name) ?? 0));
  const paths = new Set(sources.map(({ path }) => path));
  const stale = exceptions.filter(({ function: name, branches }) => {
    const now = counted.get(name) ?? 0;
    return paths.has(pathOf(name)) && (now <= BRANCHES_MAX || now < branches);
  });
  return [
    ...above.map(([name, branches]) => ({ path: pathOf(name), what: `${name} has ${branches} branches; at most ${BRANCHES_MAX}` })),
    ...stale.map(({ function: name, branches }) => ({
      path: pathOf(name),
      what: `${name} has ${counted.get(name) ?? 0} branches: branchExceptions allows ${branches}`,
    })),
  ];
}

function pathOf(name: string): string {
  return name.slice(0, name.indexOf(" "));
}

interface Node {
  type: string;
  [key: string]: unknown;
}

/** Cached, since several rules read the same files. */
const known = new WeakMap<SourceFile, Counted[]>();

/**
 * Counts the branches of each function in a file, without those of inner functions. Empty if no function can have too
 * many.
 */
function branchesOf(file: SourceFile): Counted[] {
  const counted = known.get(file) ?? countBranches(file);
  known.set(file, counted);
  return counted;
}

function countBranches({ path, text }: SourceFile): Counted[] {
  if ([...text.matchAll(/\b(?:if|case|for|while|catch)\b|\?|&&|\|\|/g)].length <= BRANCHES_MAX) return [];
  const program = parseAst(text, { lang: path.endsWith("x") ? "tsx" : "ts" }, path) as unknown as Node;
  const functions: Counted[] = [];
  visit(program, { name: "", branches: 0 }, "", functions);
  return functions;
}

function visit(node: Node, within: Counted, name: string, functions: Counted[]): void {
  let counted = within;
  if (isFunction(node)) {
    counted = { name: uniqueName(within.name, nameOf(node) ?? name, functions), branches: 0 };
    functions.push(counted);
  }
  counted.branches += isBranch(node) ? 1 : 0;
  for (const [key, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) visit(child, counted, key === "init" || key === "value" ? (nameOf(node) ?? "") : "", functions);
    }
  }
}

/**
 * Returns a name such as `outer.inner`. An anonymous function is `outer.()`, and a second one with the same name
 * `outer.()#2`.
 */
function uniqueName(outer: string, own: string, functions: readonly Counted[]): string {
  const name = [outer, own || "()"].filter((part) => part !== "").join(".");
  const same = functions.filter((each) => each.name === name || each.name.startsWith(`${name}#`)).length;
  return same === 0 ? name : `${name}#${same + 1}`;
}

function nameOf(node: Node): string | null {
  const named = [node.id, node.key].find((each) => isNode(each) && (each.type === "Identifier" || each.type === "PrivateIdentifier"));
  return isNode(named) ? `${named.type === "PrivateIdentifier" ? "#" : ""}${named.name}` : null;
}

function isFunction({ type }: Node): boolean {
  return type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ArrowFunctionExpression";
}

const branching = new Set([
  "IfStatement",
  "ConditionalExpression",
  "LogicalExpression",
  "ForStatement",
  "ForInStatement",
  "ForOfStatement",
  "WhileStatement",
  "DoWhileStatement",
  "CatchClause",
]);

function isBranch(node: Node): boolean {
  if (node.type === "SwitchCase") return node.test !== null;
  if (node.type === "AssignmentExpression") return ["||=", "&&=", "??="].includes(String(node.operator));
  return branching.has(node.type);
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}
