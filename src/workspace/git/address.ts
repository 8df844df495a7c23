import { CaissonError } from "../../contract/error/error.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { decodedOrNull } from "../../lib/failures.ts";

/** The allowed forms of a remote. They exclude `ext::` and other transports that run programs. */
const ALLOWED = /^(https?|ssh|git|file):\/\/|^[\w.-]+@[\w.-]+:/i;

/** Throws `invalid` if the text is not the address of a repository. */
export function checkAddress(url: string): void {
  if (ALLOWED.test(url) && !/[\0\n\r]/.test(url) && !url.startsWith("-")) return;
  throw new CaissonError("invalid", `${JSON.stringify(cleanAddress(url).slice(0, 200))} is not the address of a repository`, {
    hint: "Use https://, ssh://, git://, file:// or user@host:path.",
  });
}

/** The parts of an address. As in URLs, the user is everything up to the last `@` before the path. */
const PARTS = /^([a-z][a-z0-9+.-]*:\/\/)(?:([^/?#]*)@)?([^?#]*)([?#].*)?$/is;

/** Returns an address without its password or token, which may be shown, logged and used inside. */
export function cleanAddress(url: string): string {
  const [, scheme, user, place = ""] = PARTS.exec(url) ?? [];
  if (scheme === undefined) return /^[\w.-]+@[\w.-]+:/.test(url) ? url : url.replace(/^.*@/s, "");
  // Not a valid URL, so we cannot tell where its password ends.
  if (/^(?:https?|git):/i.test(scheme) && !URL.canParse(`${scheme}${place}`)) return scheme;
  return user !== undefined && /^(?:git\+)?ssh:/i.test(scheme) && !user.includes(":") ? `${scheme}${user}@${place}` : `${scheme}${place}`;
}

/** Removes the secret of an address from a text. */
export function withoutSecretOf(url: string, text: string): string {
  const clean = cleanAddress(url);
  if (clean === url) return text;
  const [, , user = "", , query = ""] = PARTS.exec(url) ?? [];
  const secrets = [user, ...user.split(/[:@]/), query.slice(1), ...query.slice(1).split(/[&=]/)].filter(({ length }) => length >= 4);
  // Git changes the spelling of addresses, so we remove everything before an @.
  let redactedText = text.replaceAll(url, clean).replaceAll(/\/\/[^/\s'"]*@/g, "//***@");
  for (const part of secrets) redactedText = redactedText.replaceAll(part, "***").replaceAll(decodedOrNull(part) ?? part, "***");
  return redactedText;
}

/** Rejects an address with a secret, for callers that store it in a log, which never forgets. Throws `invalid`. */
export function refuseSecretIn(source: WorkspaceSource | null | undefined): void {
  if (source?.kind !== "git" || cleanAddress(source.url) === source.url) return;
  throw new CaissonError("invalid", `the address of ${cleanAddress(source.url)} carries a password or a query, which would be logged`, {
    hint: "Leave it out, and store the password as a secret of the station: caisson secret set NAME@HOST.",
  });
}

export function withoutSecret(source: WorkspaceSource): WorkspaceSource {
  return source.kind === "git" ? { ...source, url: cleanAddress(source.url) } : source;
}

/**
 * Returns the absolute address of a submodule. It may be relative to the address of the repository that names the
 * submodule. Throws `unsafe`.
 */
export function submoduleAddress(base: string, url: string): string {
  const absolute = url.startsWith("./") || url.startsWith("../") ? relativeTo(base, url) : url;
  checkAddress(absolute);
  return absolute;
}

function relativeTo(base: string, url: string): string {
  const hasScheme = base.includes("://");
  const parts = withoutTrailingSlashes(base).split("/");
  for (const part of url.split("/")) {
    if (part === "..") {
      if (parts.length <= (hasScheme ? 3 : 1))
        throw new CaissonError("unsafe", `the submodule address ${JSON.stringify(url)} leaves its server`);
      parts.pop();
    } else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}

/** Returns whether a key for one address may be offered at the other. */
export function sameHost(a: string, b: string): boolean {
  return hostOf(a) !== null && hostOf(a) === hostOf(b);
}

function hostOf(url: string): string | null {
  const found = /^[a-z][a-z0-9+.-]*:\/\/(?:[^@/]*@)?([^:/]+)/i.exec(url)?.[1] ?? /^[\w.-]+@([\w.-]+):/.exec(url)?.[1];
  return found?.toLowerCase() ?? null;
}
