import { isIPv6 } from "node:net";
import { z } from "zod";
import { CaissonError } from "./error.ts";
import { NetworkPolicy, NetworkRule, RegistryName, SecretSpec } from "./network.ts";

/**
 * The network as people write it on a command line or in an agent's file. Everything here throws `invalid` with an
 * example.
 */

/** Not Node's own list: to load its http for that would cost every command some 20 ms. */
const methodNames = new Set(
  "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH REPORT SEARCH UNLOCK PURGE QUERY".split(" "),
);

const RULE_HINT = "Write [private] [GET|HEAD] HOST[:PORT][/PATH], such as github.com, *.example.org:8443 or GET api.github.com/repos.";

/** `[private] [METHOD|METHOD…] HOST[:PORT[+PORT…]][/PATH]`. */
export function parseRule(text: string): NetworkRule {
  const words = text.trim().split(/\s+/);
  const isPrivate = words[0] === "private";
  if (isPrivate) words.shift();
  const methods = words.length > 1 ? words.shift()?.toUpperCase().split("|") : undefined;
  const [target = "", ...more] = words;
  const [, host = "", ports, path] = /^(?:[a-z]+:\/\/)?(\[[^\]]*\]|[^:/]+)(?::([\d+]+))?(\/.*)?$/i.exec(target) ?? [];
  const parsed = NetworkRule.safeParse({
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
      : `there is no method ${unknown}`
    : parsed.error.issues.map((issue) => issue.message).join("; ");
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a rule for the network: ${why}`, { hint: RULE_HINT });
}

/** A whole address, as people paste them, means its own port. */
function portsOf(target: string): { ports?: number[] } {
  if (/^https:\/\//i.test(target)) return { ports: [443] };
  return /^http:\/\//i.test(target) ? { ports: [80] } : {};
}

export function showRule(rule: NetworkRule): string {
  const host = isIPv6(rule.host) ? `[${rule.host}]` : rule.host;
  const usual = rule.ports.length === 2 && rule.ports.includes(80) && rule.ports.includes(443);
  const ports = usual ? "" : `:${rule.ports.join("+")}`;
  const paths = rule.paths ?? [""];
  const targets = paths.map((path) => `${host}${ports}${path}`).join(", ");
  return [rule.private ? "private" : "", rule.methods?.join("|") ?? "", targets].filter((word) => word !== "").join(" ");
}

/**
 * Several words make one policy: `none`, `open`, `registries` or `registries:npm+pypi`, `transparent`, and rules, of
 * which several may stand in one word, separated by commas.
 */
export function parsePolicy(words: readonly string[]): NetworkPolicy {
  const items = words.flatMap((word) => word.split(",")).map((item) => item.trim());
  const modes = items.filter((item) => item === "none" || item === "open");
  if (new Set(modes).size > 1 || (modes[0] === "none" && items.some((item) => item !== "none"))) {
    throw new CaissonError("invalid", "the network cannot be none and something else", { hint: "Leave none out." });
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
    throw new CaissonError("invalid", `there is no registry ${JSON.stringify(name)}`, {
      hint: `There are: ${RegistryName.options.join(", ")}.`,
    });
  });
}

export function showPolicy(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "none";
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

/** `NAME@HOST[,HOST…][;setting…]`, see the hint. */
export function parseSecret(text: string): { name: string; spec: SecretSpec } {
  const [head = "", ...settings] = text.split(";").map((part) => part.trim());
  const at = head.indexOf("@");
  const fail = (why: string) => new CaissonError("invalid", `${JSON.stringify(text)} is not a secret: ${why}`, { hint: SECRET_HINT });
  if (at < 1) throw fail("it names no host");
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
    else throw fail(`there is no setting ${JSON.stringify(key)}`);
  }
  const parsed = SecretSpec.safeParse(fields);
  if (parsed.success) return { name: head.slice(0, at), spec: parsed.data };
  throw fail(z.prettifyError(parsed.error).replaceAll(/\s*\n\s*/g, " "));
}

function sourceOf(value: string): unknown {
  const colon = value.indexOf(":");
  const kind = colon < 0 ? value : value.slice(0, colon);
  const rest = colon < 0 ? "" : value.slice(colon + 1);
  if (kind === "env") return rest === "" ? "env" : { env: rest };
  if (kind === "command") return { command: rest.split(/\s+/).filter((word) => word !== "") };
  return { [kind]: rest };
}
