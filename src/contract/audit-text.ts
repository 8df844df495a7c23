/**
 * Text that the audit log takes. The log cannot forget, and others read it: a plain string does not compile there. An
 * address becomes its origin; a name stays only while it cannot be an address.
 */
declare const brand: unique symbol;
export type AuditText = string & { readonly [brand]: true };

/** What a call names besides the parts of its path. */
export type AuditSubject = Readonly<Record<string, AuditText | undefined>>;

/** Anything else in front of the first colon may be the name or the password itself. */
const SCHEMES = new Set(["http:", "https:", "ws:", "wss:", "ssh:", "git:", "git+ssh:"]);
const SCP_LIKE = /^[^@/:\s]+@([A-Za-z0-9][A-Za-z0-9.-]{0,252}):(?!\/\/)/;
const NAME = /^[\p{L}\p{N}_./+-][\p{L}\p{N}_./+ -]{0,199}$/u;
const UNREADABLE = "(unreadable)";
const PATH_PARTS_SHOWN = 2;

/** An address without its user, password, path and query: who is reached, and by which protocol. */
export function auditOrigin(address: string): AuditText {
  return originText(address) as AuditText;
}

/** The name or id of something. What has the characters of an address is not shown. */
export function auditName(name: string): AuditText;
export function auditName(name: string | undefined): AuditText | undefined;
export function auditName(name: string | undefined): AuditText | undefined {
  if (name === undefined) return undefined;
  const isName = (NAME.test(name) && !name.includes("//")) || /^[A-Za-z0-9._:-]{1,64}$/.test(name);
  return (isName ? name : UNREADABLE) as AuditText;
}

/** The beginning of a path that no route has: the rest may be anything. */
export function auditPath(path: string): AuditText {
  const parts = path.split("/").slice(1);
  const shown = parts.slice(0, PATH_PARTS_SHOWN).map((part) => (/^[\w.-]*$/.test(part) ? part : UNREADABLE));
  return `/${shown.join("/")}${parts.length > PATH_PARTS_SHOWN ? "/…" : ""}` as AuditText;
}

function originText(address: string): string {
  if (/^(?:\/|file:)/i.test(address)) return "file://";
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url !== null && SCHEMES.has(url.protocol)) return url.host === "" ? UNREADABLE : `${url.protocol}//${url.host}`;
  const host = SCP_LIKE.exec(address)?.[1];
  return host === undefined ? UNREADABLE : `ssh://${host}`;
}
