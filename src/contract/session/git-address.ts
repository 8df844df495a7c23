import { CaissonError } from "../error/error.ts";
import { withoutTrailingSlashes } from "../trailing-slashes.ts";

/** The server and user that the host would connect to. With SSH the user determines which keys are offered. */
export interface GitOrigin {
  scheme: "https" | "http" | "ssh" | "git" | "file";
  host: string;
  port: string;
  /** Only with SSH; null: any. */
  user: string | null;
  /** Only for a folder of this machine. */
  folder: string;
}

export const gitPorts: Readonly<Record<GitOrigin["scheme"], string>> = { https: "443", http: "80", ssh: "22", git: "9418", file: "" };
/** Excludes characters that another parser could take as the end of the host, such as `?`, `#` or a backslash. */
const ADDRESS = /^(https?|ssh|git):\/\/(?:([A-Za-z0-9._~%!$&'()*+,;=:-]*)@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?(?:\/.*)?$/is;
const SHORT = /^([\w.-]+)@([\w.-]+):(?!\/\/)/;

/** Parses the origin of a repository address. Returns null if the address is ambiguous or invalid. */
export function parseGitAddress(address: string): GitOrigin | null {
  if (/[\0\n\r]/.test(address)) return null;
  if (/^file:\/\//i.test(address)) return URL.canParse(address) ? folderOrigin(new URL(address)) : null;
  const [, scheme, user, host, port] = ADDRESS.exec(address) ?? [];
  if (scheme !== undefined && host !== undefined) return serverOrigin({ scheme, user, host, port });
  const [, account, server] = SHORT.exec(address) ?? [];
  return account === undefined || server === undefined
    ? null
    : serverOrigin({ scheme: "ssh", user: account, host: server, port: undefined });
}

/** Parses a place that submodules may come from: `HOST` for https, or with another scheme. Throws `invalid`. */
export function parseGitPlace(text: string): GitOrigin {
  const place = gitPlace(text);
  if (place !== null) return place;
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a valid source of submodules`, {
    hint: "Write HOST for https, or http://HOST, ssh://[USER@]HOST, git://HOST, file:///FOLDER.",
  });
}

/** Like `parseGitPlace`, but returns null for an invalid place. */
export function gitPlace(text: string): GitOrigin | null {
  const origin = parseGitAddress(text.includes("://") ? text : `https://${text}`);
  if (origin === null || (origin.scheme !== "file" && !/^([a-z]+:\/\/)?[^/]+\/?$/i.test(text))) return null;
  return origin.scheme === "ssh" && origin.user === "" ? { ...origin, user: null } : origin;
}

function serverOrigin(parts: { scheme: string; user: string | undefined; host: string; port: string | undefined }): GitOrigin {
  const scheme = parts.scheme.toLowerCase() as GitOrigin["scheme"];
  const port = parts.port ?? gitPorts[scheme];
  return { scheme, host: parts.host.toLowerCase(), port, user: scheme === "ssh" ? (parts.user ?? "") : null, folder: "" };
}

function folderOrigin(url: URL): GitOrigin | null {
  if (url.host !== "" || url.search !== "" || url.hash !== "") return null;
  return { scheme: "file", host: "", port: "", user: null, folder: withoutTrailingSlashes(url.pathname) };
}
