/**
 * Text that is safe for the audit log. Since the log is permanent and others read it, plain strings do not compile
 * there. Addresses are reduced to their origin, and a name that could be an address is not shown.
 */
declare const brand: unique symbol;
export type AuditText = string & { readonly [brand]: true };

/** What a call concerns, beyond the parts of its path. */
export type AuditSubject = Readonly<Record<string, AuditText | undefined>>;

/** Known schemes. Other text before the first colon may be a user name or a password. */
const SCHEMES = new Set(["http:", "https:", "ws:", "wss:", "ssh:", "git:", "git+ssh:"]);
const SCP_LIKE = /^[^@/:\s]+@([A-Za-z0-9][A-Za-z0-9.-]{0,252}):(?!\/\/)/;
const NAME = /^[\p{L}\p{N}_./+-][\p{L}\p{N}_./+ -]{0,199}$/u;
const UNREADABLE = "(unreadable)";
const PATH_PARTS_SHOWN = 2;

/** Returns an address without user, password, path and query: only the host and protocol. */
export function auditOrigin(address: string): AuditText {
  return originText(address) as AuditText;
}

/** Returns a name or id, or hides it if it contains characters of an address. */
export function auditName(name: string): AuditText;
export function auditName(name: string | undefined): AuditText | undefined;
export function auditName(name: string | undefined): AuditText | undefined {
  if (name === undefined) return undefined;
  const isName = (NAME.test(name) && !name.includes("//")) || /^[A-Za-z0-9._:-]{1,64}$/.test(name);
  return (isName ? name : UNREADABLE) as AuditText;
}

/** Returns the start of an unknown path; the rest may contain anything. */
export function auditPath(path: string): AuditText {
  const parts = path.split("/").slice(1);
  const visibleParts = parts.slice(0, PATH_PARTS_SHOWN).map((part) => (/^[\w.-]*$/.test(part) ? part : UNREADABLE));
  return `/${visibleParts.join("/")}${parts.length > PATH_PARTS_SHOWN ? "/…" : ""}` as AuditText;
}

function originText(address: string): string {
  if (/^(?:\/|file:)/i.test(address)) return "file://";
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url !== null && SCHEMES.has(url.protocol)) return url.host === "" ? UNREADABLE : `${url.protocol}//${url.host}`;
  const host = SCP_LIKE.exec(address)?.[1];
  return host === undefined ? UNREADABLE : `ssh://${host}`;
}
