import type { GatewayConfig, GatewayWire, NetworkPolicy, SecretConfig } from "../../contract/network/network.ts";
import { gitCredentialEnv } from "../secrets/git-credential.ts";
import { insidePath } from "./inside-paths.ts";
import { GATEWAY_PORT, PROXY_PORT } from "./ports.ts";

/** Looks like a key to SDKs that require one. The gateway holds the real one. */
export const GATEWAY_KEY = "caisson-gateway";
const NOT_BY_PROXY = "localhost,127.0.0.1,::1";

export interface InsideEnvOptions {
  policy: NetworkPolicy;
  placeholders: Readonly<Record<string, string>>;
  secrets: Readonly<Record<string, SecretConfig>>;
  gateway: GatewayConfig | undefined;
  mirrorEnv: Readonly<Record<string, string>>;
}

/**
 * Returns the variables for every command of a sandbox with this policy. With `none` there is no proxy to name. That
 * leaves the placeholders of secrets, which programs may look for, and the gateway, which needs no network.
 */
export function insideEnv(options: InsideEnvOptions): Record<string, string> {
  const { policy, placeholders, secrets, gateway, mirrorEnv } = options;
  return {
    ...(policy.mode === "none" ? {} : { ...proxyEnv(), ...trustEnv(), ...mirrorEnv, ...gitCredentialEnv(secrets, placeholders) }),
    ...placeholders,
    ...Object.assign({}, ...(gateway?.wires ?? []).map((wire) => gatewayEnv[wire])),
  };
}

function proxyEnv(): Record<string, string> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    // Not socks5h://, although the port supports it: Python's httpx, and with it the SDKs of OpenAI and Anthropic,
    // would then fail at once because a package is missing.
    ALL_PROXY: proxy,
    NO_PROXY: NOT_BY_PROXY,
    http_proxy: proxy,
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: NOT_BY_PROXY,
    // Instead of NODE_USE_ENV_PROXY, which only newer Node versions support. There it doubles the start time of every
    // program, and does nothing for agents that programs create. --require instead of --import, because Node before
    // 18.18 refuses to start with the latter.
    NODE_OPTIONS: `--require=${insidePath("nodeProxy")}`,
    // Of Java's two variables, the one that only `java` reads, so that javac and others do not print that they picked
    // it up.
    JDK_JAVA_OPTIONS: `@${insidePath("javaOptions")}`,
  };
}

function trustEnv(): Record<string, string> {
  const bundle = insidePath("caBundle");
  const readers = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "DENO_CERT",
    // Node adds these to its built-in authorities, so it also trusts the system's own, such as a company's.
    "NODE_EXTRA_CA_CERTS",
  ];
  return Object.fromEntries(readers.map((name) => [name, bundle]));
}

/** The gateway's URLs inside. */
export const gatewayUrls: Record<GatewayWire, string> = {
  anthropic: `http://127.0.0.1:${GATEWAY_PORT}/anthropic`,
  openai: `http://127.0.0.1:${GATEWAY_PORT}/openai/v1`,
};

const gatewayEnv: Record<GatewayWire, Record<string, string>> = {
  // Only the key: with ANTHROPIC_AUTH_TOKEN as well, clients complain about two ways to log in.
  anthropic: { ANTHROPIC_BASE_URL: gatewayUrls.anthropic, ANTHROPIC_API_KEY: GATEWAY_KEY },
  openai: { OPENAI_BASE_URL: gatewayUrls.openai, OPENAI_API_KEY: GATEWAY_KEY, CODEX_API_KEY: GATEWAY_KEY },
};
