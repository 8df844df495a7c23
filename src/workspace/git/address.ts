import { CaissonError } from "../../contract/error.ts";
import type { WorkspaceSource } from "../../contract/session.ts";

/** What a remote may be. `ext::` and other transports that run programs are not among them. */
const ALLOWED = /^(https?|ssh|git|file):\/\/|^[\w.-]+@[\w.-]+:/i;

/** Throws `invalid` for what is no address of a repository. */
export function checkAddress(url: string): void {
  if (ALLOWED.test(url) && !/[\0\n\r]/.test(url) && !url.startsWith("-")) return;
  throw new CaissonError("invalid", `${JSON.stringify(cleanAddress(url).slice(0, 200))} is not the address of a repository`, {
    hint: "Use https://, ssh://, git://, file:// or user@host:path.",
  });
}

/** An address without the password or token in it: what may be shown, logged, and go inside. */
export function cleanAddress(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)([^@/]*)@/i, (_, scheme: string, user: string) =>
    /^(ssh|git\+ssh):/i.test(scheme) && !user.includes(":") ? `${scheme}${user}@` : scheme,
  );
}

/** A text in which the secret of an address may stand, without it. */
export function withoutSecretOf(url: string, text: string): string {
  const user = /^[a-z][a-z0-9+.-]*:\/\/([^@/]*)@/i.exec(url)?.[1];
  let clean = text.replaceAll(url, cleanAddress(url));
  if (user && cleanAddress(url) !== url) {
    for (const part of [user, ...user.split(":")])
      if (part.length >= 4) clean = clean.replaceAll(part, "***").replaceAll(decodeURIComponent(part), "***");
  }
  return clean;
}

export function withoutSecret(source: WorkspaceSource): WorkspaceSource {
  return source.kind === "git" ? { ...source, url: cleanAddress(source.url) } : source;
}

/** A submodule's address, which may be relative to that of the repository that names it. Throws `unsafe`. */
export function submoduleAddress(base: string, url: string): string {
  const absolute = url.startsWith("./") || url.startsWith("../") ? relativeTo(base, url) : url;
  checkAddress(absolute);
  return absolute;
}

function relativeTo(base: string, url: string): string {
  const hasScheme = base.includes("://");
  const parts = base.replace(/\/+$/, "").split("/");
  for (const part of url.split("/")) {
    if (part === "..") {
      if (parts.length <= (hasScheme ? 3 : 1))
        throw new CaissonError("unsafe", `the submodule address ${JSON.stringify(url)} leaves its server`);
      parts.pop();
    } else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}

/** Whether a key for one address may be offered at the other. */
export function sameHost(a: string, b: string): boolean {
  return hostOf(a) !== null && hostOf(a) === hostOf(b);
}

function hostOf(url: string): string | null {
  const found = /^[a-z][a-z0-9+.-]*:\/\/(?:[^@/]*@)?([^:/]+)/i.exec(url)?.[1] ?? /^[\w.-]+@([\w.-]+):/.exec(url)?.[1];
  return found?.toLowerCase() ?? null;
}
