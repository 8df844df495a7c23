import { CaissonError } from "../error/error.ts";
import { checkValue, tellProblems } from "../error/plain-problems.ts";
import { NetworkPolicy, NetworkRule, RegistryName, SecretConfig } from "./network.ts";

/**
 * Parses and formats networks as users write them on a command line or in an agent file. All errors are `invalid`, with
 * an example.
 */

/** Our own list: loading Node's http for its list would cost every command some 20 ms. */
const methodNames = new Set(
  "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH REPORT SEARCH UNLOCK PURGE QUERY".split(" "),
);

const RULE_HINT = "Write [private] [GET|HEAD] HOST[:PORT][/PATH], such as github.com, *.example.org:8443 or GET api.github.com/repos.";

/** Parses `[private] [METHOD|METHOD…] HOST[:PORT[+PORT…]][/PATH]`. */
export function parseRule(text: string): NetworkRule {
  const words = text.trim().split(/\s+/);
  const isPrivate = words[0] === "private";
  if (isPrivate) words.shift();
  const methods = words.length > 1 ? words.shift()?.toUpperCase().split("|") : undefined;
  const [target = "", ...more] = words;
  if (methods === undefined && !isPrivate && isBareLabel(target)) throw notAHost(text);
  const [, host = "", ports, path] = /^(?:[a-z]+:\/\/)?(\[[^\]]*\]|[^:/]+)(?::([\d+]+))?(\/.*)?$/i.exec(target) ?? [];
  const parsed = checkValue(NetworkRule, {
    host,
    ...(ports === undefined ? portsOf(target) : { ports: ports.split("+").map(Number) }),
    ...(methods === undefined ? {} : { methods }),
    ...(path === undefined || path === "/" ? {} : { paths: [path] }),
    private: isPrivate,
  });
  const unknown = methods?.find((method) => !methodNames.has(method));
  if (parsed.success && more.length === 0 && unknown === undefined) return parsed.data;
  const why = parsed.success
    ? unknown === undefined
      ? "too many words"
      : `unknown method ${unknown}`
    : tellProblems(parsed.problems, (path) => (path[0] === "host" ? JSON.stringify(host) : String(path[0] ?? "")));
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a network rule: ${why}`, { hint: RULE_HINT });
}

/**
 * Returns whether a target is a name without a dot. Such a name is probably a typo, so it only counts as a host
 * together with a port, a path, a method or `private`.
 */
function isBareLabel(target: string): boolean {
  return /^[a-z0-9_-]+$/i.test(target) && !/^\d+$/.test(target);
}

function notAHost(text: string): CaissonError {
  const suggestion = ["registries", "open", "none", "transparent"].find(
    (word) => word.slice(0, 2) === text.trim().toLowerCase().slice(0, 2),
  );
  const means = methodNames.has(text.trim().toUpperCase()) ? "Write the method before the host: GET api.example.org/path." : RULE_HINT;
  return new CaissonError("invalid", `${JSON.stringify(text)} is not a host`, {
    hint:
      suggestion === undefined
        ? `${means} Write a name without a dot with its port: db:5432.`
        : `Did you mean ${suggestion}? Write a host without a dot with its port: ${text.trim()}:443.`,
  });
}

/** Returns the port of a complete URL, as users paste them. */
function portsOf(target: string): { ports?: number[] } {
  if (/^https:\/\//i.test(target)) return { ports: [443] };
  return /^http:\/\//i.test(target) ? { ports: [80] } : {};
}

export function showRule(rule: NetworkRule): string {
  const host = rule.host.includes(":") ? `[${rule.host}]` : rule.host;
  const bare = isBareLabel(rule.host) && !rule.private && rule.methods === undefined && rule.paths === undefined;
  const usual = !bare && rule.ports.length === 2 && rule.ports.includes(80) && rule.ports.includes(443);
  const ports = usual ? "" : `:${rule.ports.join("+")}`;
  const paths = rule.paths ?? [""];
  const targets = paths.map((path) => `${host}${ports}${path}`).join(", ");
  return [rule.private ? "private" : "", rule.methods?.join("|") ?? "", targets].filter((word) => word !== "").join(" ");
}

/**
 * Combines words into one policy: `none`, `open`, `registries` or `registries:npm+pypi`, `transparent`, and rules. One
 * word may contain several rules, separated by commas.
 */
export function parsePolicy(words: readonly string[]): NetworkPolicy {
  const items = words.flatMap((word) => word.split(",")).map((item) => item.trim());
  const modes = items.filter((item) => item === "none" || item === "open");
  if (new Set(modes).size > 1 || (modes[0] === "none" && items.some((item) => item !== "none"))) {
    throw new CaissonError("invalid", "the network cannot combine none with other words", { hint: "Omit none." });
  }
  if (items.length === 0 || modes[0] === "none") return { mode: "none" };
  const rest = items.filter((item) => item !== "open" && item !== "transparent");
  const registries = rest.filter((item) => /^registries(:|$)/.test(item)).flatMap(registriesOf);
  const rules = rest.filter((item) => !/^registries(:|$)/.test(item)).map(parseRule);
  const common = { rules, registries: [...new Set(registries)], transparent: items.includes("transparent") };
  return NetworkPolicy.parse({ mode: modes[0] ?? "allow", ...common });
}

function registriesOf(item: string): RegistryName[] {
  const names = item.split(":")[1];
  if (names === undefined) return [...RegistryName.options];
  return names.split("+").map((name) => {
    const parsed = RegistryName.safeParse(name);
    if (parsed.success) return parsed.data;
    throw new CaissonError("invalid", `unknown registry ${JSON.stringify(name)}`, {
      hint: `Use one of: ${RegistryName.options.join(", ")}.`,
    });
  });
}

export function showPolicy(policy: NetworkPolicy): string {
  // Includes modes that only a newer station knows, or that a hostile one made up.
  if (policy.mode !== "allow" && policy.mode !== "open") return policy.mode;
  const registries =
    policy.registries.length === 0
      ? []
      : [policy.registries.length === RegistryName.options.length ? "registries" : `registries:${policy.registries.join("+")}`];
  const words = [
    policy.mode === "open" ? "open" : "",
    ...registries,
    ...policy.rules.map(showRule),
    policy.transparent ? "transparent" : "",
  ];
  return words.filter((word) => word !== "").join(", ") || "allow nothing";
}

const SECRET_HINT =
  "Write NAME@HOST[,HOST…], then any of ;from=env:NAME ;from=file:PATH ;from=command:PROGRAM … ;header=NAME ;methods=GET|POST ;paths=/a|/b ;ports=443 ;git or ;git=USER.";

/** Parses `NAME@HOST[,HOST…][;setting…]`; see the hint. */
export function parseSecret(text: string): { name: string; config: SecretConfig } {
  const [head = "", ...settings] = text.split(";").map((part) => part.trim());
  const at = head.indexOf("@");
  const fail = (why: string) => new CaissonError("invalid", `${JSON.stringify(text)} is not a secret: ${why}`, { hint: SECRET_HINT });
  if (at < 1) throw fail("it has no host");
  const fields: Record<string, unknown> = {
    hosts: head
      .slice(at + 1)
      .split(",")
      .map((host) => host.trim()),
  };
  for (const setting of settings) {
    const equals = setting.indexOf("=");
    const key = equals < 0 ? setting : setting.slice(0, equals);
    const value = equals < 0 ? "" : setting.slice(equals + 1);
    if (key === "from") fields.from = sourceOf(value);
    else if (key === "header") fields.header = value;
    else if (key === "methods" || key === "paths") fields[key] = value.split("|");
    else if (key === "ports") fields.ports = value.split("+").map(Number);
    else if (key === "git") fields.git = value === "" ? {} : { username: value };
    else throw fail(`unknown setting ${JSON.stringify(key)}`);
  }
  const parsed = checkValue(SecretConfig, fields);
  if (parsed.success) return { name: head.slice(0, at), config: parsed.data };
  throw fail(tellProblems(parsed.problems, (path) => secretParts[String(path[0])] ?? path.join(".")));
}

/** The parts of a secret in text form. */
const secretParts: Readonly<Record<string, string>> = {
  hosts: "HOST",
  from: "from=",
  header: "header=",
  methods: "methods=",
  paths: "paths=",
  ports: "ports=",
  git: "git=",
};

function sourceOf(value: string): unknown {
  const colon = value.indexOf(":");
  const kind = colon < 0 ? value : value.slice(0, colon);
  const rest = colon < 0 ? "" : value.slice(colon + 1);
  if (kind === "env") return rest === "" ? "env" : { env: rest };
  if (kind === "command") return { command: rest.split(/\s+/).filter((word) => word !== "") };
  return { [kind]: rest };
}
