import { readFile } from "node:fs/promises";
import { BlockList, isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { CaissonError } from "../contract/error/error.ts";
import { isLoopback, type StationNames } from "./gate.ts";
import { type PreviewNames, previewNames } from "./previews/preview-names.ts";

const FORWARDED_MAX = 32;

/** The options of `caisson up` that decide who may reach the port, and through what. */
export interface ExposureOptions {
  listenHost: string;
  /** The PEM files of a certificate (with its chain) and of its key. */
  tls?: { certPath: string; keyPath: string };
  /** The station's public URL, such as `https://caisson.example.com`. */
  publicUrl?: string;
  /**
   * Addresses or ranges of proxies that terminate TLS in front of the station. Only they and this machine may connect.
   */
  proxies?: readonly string[];
  /** The public URL pattern of its previews, such as `https://*.previews.example.com`. */
  previewsAt?: string;
}

export interface Exposure extends StationNames {
  /** The address to listen on. */
  readonly host: string;
  /** Null without our own TLS. Reads the files again, since they are renewed every few weeks. */
  readonly certificate: (() => Promise<{ cert: string; key: string }>) | null;
  /** Null if previews are only reachable on this machine. */
  readonly previews: PreviewNames | null;
  mayConnect(address: string): boolean;
  /** Whether the address is one of our proxies, which act for many callers. */
  isProxy(address: string): boolean;
  /**
   * The address that a request came from before it reached the proxies. Forwarding headers from other machines are
   * ignored.
   */
  callerOf(address: string, forwardedFor: string | null): string;
}

/**
 * Throws `invalid` for a listen address that other machines can reach without TLS, and for invalid certificate files.
 */
export async function judgeExposure(options: ExposureOptions): Promise<Exposure> {
  const { tls, publicUrl } = options;
  const host = options.listenHost === "localhost" ? "127.0.0.1" : options.listenHost;
  if (isIP(host) === 0) {
    throw new CaissonError("invalid", `--listen-host ${JSON.stringify(host)} is not an IP address`, {
      hint: "Use an address such as 127.0.0.1, or 0.0.0.0 for all addresses of this machine.",
    });
  }
  const proxies = blockListOf(options.proxies ?? []);
  const isPublic = !isLoopback(host);
  if (isPublic && tls === undefined && proxies === null) throw notEncrypted(host);
  if ((isPublic || proxies !== null) && publicUrl === undefined) {
    throw new CaissonError("invalid", "a station that other machines can reach needs a public URL", {
      hint: "Add --public-url https://caisson.example.com",
    });
  }
  const url = publicUrl === undefined ? null : checkedUrl(publicUrl);
  const certificate = tls === undefined ? null : () => readCertificate(tls);
  await certificate?.();
  const isProxy = (address: string) => proxies?.check(plainAddress(address), family(address)) === true;
  return {
    host,
    publicUrl: url,
    scheme: tls === undefined ? "http" : "https",
    certificate,
    previews: options.previewsAt === undefined ? null : previewNames(options.previewsAt, { publicUrl: url }),
    isProxy,
    mayConnect: (address) => proxies === null || tls !== undefined || isLoopback(plainAddress(address)) || isProxy(address),
    callerOf(address, forwardedFor) {
      const plain = plainAddress(address);
      if (forwardedFor === null || !isProxy(address)) return plain;
      // Our proxy appended the last hop. An earlier one counts only if the hop after it is also one of our proxies.
      const hops = forwardedFor.slice(-4096).split(",").slice(-FORWARDED_MAX).reverse();
      let caller = plain;
      for (const hop of hops.map((each) => plainAddress(each.trim()))) {
        if (isIP(hop) === 0) break;
        caller = hop;
        if (!isProxy(hop)) break;
      }
      return caller;
    },
  };
}

function notEncrypted(host: string): CaissonError {
  return new CaissonError("invalid", `the station does not listen on ${host} without TLS, which would expose tokens on the network`, {
    hint:
      "Give it a certificate (--tls-cert FILE --tls-key FILE), name the proxy that terminates TLS (--proxy ADDRESS), " +
      "or listen on 127.0.0.1 and connect through an SSH tunnel.",
  });
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "") return url.origin;
  throw new CaissonError("invalid", `--public-url ${JSON.stringify(text)} is not a station's URL`, {
    hint: "Use an https URL without a path, such as https://caisson.example.com.",
  });
}

function blockListOf(proxies: readonly string[]): BlockList | null {
  if (proxies.length === 0) return null;
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = "", bits, ...rest] = proxy.split("/");
    const widest = isIP(address) === 4 ? 32 : 128;
    const isRange = bits !== undefined && /^[0-9]{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= widest;
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !isRange)) {
      throw new CaissonError("invalid", `--proxy ${JSON.stringify(proxy)} is neither an IP address nor a range`, {
        hint: "Use an address or a range, such as 10.0.0.7 or 10.0.0.0/24.",
      });
    }
    if (bits === undefined) list.addAddress(address, family(address));
    else list.addSubnet(address, Number(bits), family(address));
  }
  return list;
}

/** Unwraps IPv4-mapped IPv6 addresses. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=[0-9.]+$)/i, "");
}

function family(address: string): "ipv4" | "ipv6" {
  return isIP(plainAddress(address)) === 6 ? "ipv6" : "ipv4";
}

async function readCertificate({ certPath, keyPath }: { certPath: string; keyPath: string }): Promise<{ cert: string; key: string }> {
  try {
    const [cert, key] = await Promise.all([readFile(certPath, "utf8"), readFile(keyPath, "utf8")]);
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (cause) {
    throw new CaissonError("invalid", `the certificate ${certPath} with the key ${keyPath} cannot be used: ${(cause as Error).message}`, {
      cause,
      hint: "Both must be PEM files: the certificate with its chain, and its key.",
    });
  }
}
