import { CaissonError } from "../../contract/error.ts";
import { cleanAddress } from "./address.ts";

/** Whom the host would talk to, how, and as whom: with SSH that decides which of the user's keys are offered. */
interface Origin {
  scheme: string;
  host: string;
  port: string;
  /** With SSH only; null: any. */
  user: string | null;
  /** Of a folder of this machine. */
  folder: string;
}

const ports: Record<string, string> = { https: "443", http: "80", ssh: "22", git: "9418", file: "" };
/** Nothing that another reader of addresses could take for the end of the host, such as `?`, `#` or a backslash. */
const ADDRESS = /^(https?|ssh|git):\/\/(?:([A-Za-z0-9._~%!$&'()*+,;=:-]*)@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?(?:\/.*)?$/is;
const SHORT = /^([\w.-]+)@([\w.-]+):(?!\/\/)/;

/**
 * A submodule's address is data of a repository: it may lead to where that repository came from, or to a place the user
 * named, and nowhere else. Otherwise a clone could have the host fetch anything it can reach, with the user's own keys.
 * Throws `denied` with the option that allows it.
 */
export function checkSubmoduleOrigin(
  submodule: { name: string; address: string },
  options: { source: string; allowed: readonly string[] },
): void {
  const { address } = submodule;
  const origin = originOf(address);
  const from = originOf(options.source);
  const shown = JSON.stringify(cleanAddress(address).slice(0, 200));
  if (origin === null)
    throw new CaissonError("unsafe", `the submodule ${JSON.stringify(submodule.name)} has an address that is not clear: ${shown}`);
  // Folders of this machine are not one place: each is named.
  if (from !== null && origin.scheme !== "file" && leadsTo(origin, from)) return;
  if (options.allowed.some((text) => leadsTo(origin, parsePlace(text)))) return;
  const keys = origin.scheme === "ssh" ? " Your SSH keys are offered there then." : "";
  throw new CaissonError(
    "denied",
    `the submodule ${JSON.stringify(submodule.name)} comes from ${shown}, which is not where ${cleanAddress(options.source)} came from`,
    { hint: `\`--submodules-from ${placeOf(origin)}\` allows it.${keys}` },
  );
}

/** A place that the user allows: `HOST`, which is https, or with another scheme. Throws `invalid`. */
export function parsePlace(text: string): Origin {
  const origin = originOf(text.includes("://") ? text : `https://${text}`);
  const isPlace = origin !== null && (origin.scheme === "file" || /^([a-z]+:\/\/)?[^/]+\/?$/i.test(text));
  if (isPlace) return origin.scheme === "ssh" && origin.user === "" ? { ...origin, user: null } : origin;
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a place that submodules can come from`, {
    hint: "Write HOST for https, or http://HOST, ssh://[USER@]HOST, git://HOST, file:///FOLDER.",
  });
}

function originOf(address: string): Origin | null {
  if (/^file:\/\//i.test(address)) return URL.canParse(address) ? folderOrigin(new URL(address)) : null;
  const [, scheme, user, host, port] = ADDRESS.exec(address) ?? [];
  if (scheme !== undefined && host !== undefined) return serverOrigin({ scheme, user, host, port });
  const [, account, server] = SHORT.exec(address) ?? [];
  return account === undefined || server === undefined
    ? null
    : serverOrigin({ scheme: "ssh", user: account, host: server, port: undefined });
}

function serverOrigin(parts: { scheme: string; user: string | undefined; host: string; port: string | undefined }): Origin {
  const scheme = parts.scheme.toLowerCase();
  const port = parts.port ?? ports[scheme] ?? "";
  return { scheme, host: parts.host.toLowerCase(), port, user: scheme === "ssh" ? (parts.user ?? "") : null, folder: "" };
}

function folderOrigin(url: URL): Origin | null {
  if (url.host !== "" || url.search !== "" || url.hash !== "") return null;
  return { scheme: "file", host: "", port: "", user: null, folder: url.pathname.replace(/\/+$/, "") };
}

function leadsTo(origin: Origin, place: Origin): boolean {
  const sameServer = origin.scheme === place.scheme && origin.host === place.host && origin.port === place.port;
  const sameUser = place.user === null || origin.user === place.user;
  const within = place.folder === origin.folder || origin.folder.startsWith(`${place.folder}/`);
  return sameServer && sameUser && within;
}

/** As it is written for the option. */
function placeOf({ scheme, host, port, user, folder }: Origin): string {
  if (scheme === "file") return `file://${folder}`;
  const server = `${host}${port === ports[scheme] ? "" : `:${port}`}`;
  return scheme === "https" ? server : `${scheme}://${user ? `${user}@` : ""}${server}`;
}
