import type { RequestHead } from "../http/head.ts";
import type { Header } from "../http/headers.ts";
import { createPatternMatcher } from "./pattern-matcher.ts";
import type { InjectionResult, SecretDestination } from "./secret-book.ts";
import type { SecretScope } from "./secret-scope.ts";

interface InjectionOptions {
  placeholders: () => Readonly<Record<string, string>>;
  scopes: ReadonlyMap<string, SecretScope>;
  /** Throws if the value is not available or was revoked. */
  usableValue: (name: string) => Promise<string>;
}

/**
 * Headers that specify where a message goes and where it ends, and hop-by-hop headers. A value is never part of them.
 */
const neverIn = new Set(
  "host content-length transfer-encoding connection keep-alive proxy-connection proxy-authorization te trailer upgrade expect".split(" "),
);
const basicCredentials = /^(basic +)([A-Za-z0-9+/_-]+={0,2})$/i;

export function createInjection({
  placeholders,
  scopes,
  usableValue,
}: InjectionOptions): (head: RequestHead, to: SecretDestination) => Promise<InjectionResult> {
  let finder: Find | null = null;
  return async (head, to) => {
    finder ??= placeholderFinder(placeholders());
    const find = finder;
    const withheld = new Map<string, { secret: string; why: string }>();
    const withhold = (secret: string, why: string) => withheld.set(`${secret} ${why}`, { secret, why });
    const refusals = new Map<string, string | null>();
    const refusalOf = (name: string): string | null => {
      const known = refusals.get(name);
      if (known !== undefined) return known;
      const scope = scopes.get(name);
      const refusal = scope === undefined ? "it is not known" : scope.refusal(head, to);
      refusals.set(name, refusal);
      return refusal;
    };
    for (const { name } of find(head.target)) withhold(name, refusalOf(name) ?? "it is in the request's URL, which servers log");
    const replacements = new Map<Header, Found[]>();
    for (const header of head.headers) {
      for (const { name } of find(header.name)) withhold(name, "it is in a header name");
      const found = findIn(header, find).filter(({ name }) => {
        const why = refusalOf(name) ?? headerRefusal(header.lower, scopes.get(name));
        if (why !== null) withhold(name, why);
        return why === null;
      });
      if (found.length > 0) replacements.set(header, found);
    }
    if (replacements.size === 0) return { head, used: [], withheld: [...withheld.values()] };
    const used = [...new Set([...replacements.values()].flat().map(({ name }) => name))];
    const values = new Map(await Promise.all(used.map(async (name) => [name, await usableValue(name)] as const)));
    const headers = head.headers.map((header) => {
      const found = replacements.get(header);
      return found === undefined ? header : { ...header, value: replaceSecrets(header.value, found, values) };
    });
    return { head: { ...head, headers }, used, withheld: [...withheld.values()] };
  };
}

interface Found {
  name: string;
  at: number;
  length: number;
  /** Whether `at` is an offset in the decoded Basic credentials. */
  basic: boolean;
}
type Find = (text: string) => Found[];

function placeholderFinder(placeholders: Readonly<Record<string, string>>): Find {
  const names = Object.keys(placeholders);
  const matcher = createPatternMatcher(names.map((name) => Buffer.from(placeholders[name] as string, "latin1")));
  return (text) => {
    if (matcher === null || text.length < matcher.shortest) return [];
    const bytes = Buffer.from(text, "latin1");
    const found: Found[] = [];
    for (let from = 0; ; ) {
      const match = matcher.find(bytes, from, bytes.length);
      if (match === null) return found;
      found.push({ name: names[match.index] as string, at: match.at, length: match.length, basic: false });
      from = match.at + match.length;
    }
  };
}

function findIn(header: Header, find: Find): Found[] {
  const plain = find(header.value);
  if (plain.length > 0 || header.lower !== "authorization") return plain;
  const credentials = basicCredentials.exec(header.value)?.[2];
  return credentials === undefined ? [] : find(decodeBase64(credentials)).map((found) => ({ ...found, basic: true }));
}

function headerRefusal(lower: string, scope: SecretScope | undefined): string | null {
  if (neverIn.has(lower)) return `it is never sent in the header ${lower}`;
  const only = scope?.header ?? null;
  return only === null || only === lower ? null : `it is only sent in the header ${only}`;
}

function replaceSecrets(value: string, found: readonly Found[], values: ReadonlyMap<string, string>): string {
  if (found[0]?.basic !== true) return withValues(value, found, values);
  const [, scheme = "", credentials = ""] = basicCredentials.exec(value) ?? [];
  return scheme + Buffer.from(withValues(decodeBase64(credentials), found, values), "latin1").toString("base64");
}

function withValues(text: string, found: readonly Found[], values: ReadonlyMap<string, string>): string {
  let out = "";
  let from = 0;
  for (const { name, at, length } of found) {
    out += text.slice(from, at) + values.get(name);
    from = at + length;
  }
  return out + text.slice(from);
}

function decodeBase64(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}
