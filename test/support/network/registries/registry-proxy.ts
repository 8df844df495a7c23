import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { duplexPair, pipeline } from "node:stream";
import { rootCertificates } from "node:tls";
import { SandboxId } from "../../../../src/contract/ids.ts";
import { NetworkPolicy, type RegistryName } from "../../../../src/contract/network/network.ts";
import { createAuthority } from "../../../../src/network/authority/authority.ts";
import { createEgress } from "../../../../src/network/egress/egress.ts";
import type { NetworkEventInput } from "../../../../src/network/egress/egress-options.ts";
import { insideSettings } from "../../../../src/network/mirror/inside-settings.ts";
import { createMirror } from "../../../../src/network/mirror/mirror.ts";
import type { MirrorOptions, PackagesOptions } from "../../../../src/network/mirror/mirror-options.ts";
import { insideEnv } from "../../../../src/network/sandbox-setup/inside-env.ts";
import { insidePath } from "../../../../src/network/sandbox-setup/inside-paths.ts";
import { PROXY_PORT } from "../../../../src/network/sandbox-setup/ports.ts";
import { createSecretBook } from "../../../../src/network/secrets/secret-book.ts";

export interface RegistryProxy extends AsyncDisposable {
  /** The variables for programs inside, with this machine's paths and port. */
  env: Record<string, string>;
  files: readonly { path: string; text: string }[];
  events: NetworkEventInput[];
}

type Options = PackagesOptions & Pick<MirrorOptions, "upstreams"> & { registries: readonly RegistryName[]; folder: string };

/** Starts a sandbox's network with package registries only, on a port of this machine. */
export async function startRegistryProxy(options: Options): Promise<RegistryProxy> {
  const { registries, folder, upstreams = {} } = options;
  const events: NetworkEventInput[] = [];
  const emit = (event: NetworkEventInput) => void events.push(event);
  const authority = createAuthority();
  const policy = NetworkPolicy.parse({ mode: "allow", registries });
  const mirror = createMirror({ ...options, emit });
  const sandbox = SandboxId.parse("sb_aaaaaaaaaaaa");
  const secrets = createSecretBook({ configs: {}, env: {}, runCommand: async () => "" });
  const egress = createEgress({ sandbox, policy: () => policy, secrets, authority, emit, howToAsk: () => "", mirror });
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const [outer, inner] = duplexPair();
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    pipeline(socket, outer, socket, () => {
      for (const each of [socket, outer, inner]) each.destroy();
    });
    egress.handle({ stream: inner, destination: null });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const bundle = join(folder, `authorities-${port}.pem`);
  writeFileSync(bundle, `${rootCertificates.join("\n")}\n${authority.certificatePem}`);
  const here = (text: string) => text.replaceAll(insidePath("caBundle"), bundle).replaceAll(String(PROXY_PORT), String(port));
  const settings = insideSettings(registries, upstreams);
  const {
    NODE_OPTIONS: _preload,
    JDK_JAVA_OPTIONS: _java,
    ...env
  } = insideEnv({
    policy,
    placeholders: {},
    secrets: {},
    gateway: undefined,
    mirrorEnv: settings.env,
  });
  return {
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)])),
    files: settings.files.map(({ path, text }) => ({ path, text: here(text) })),
    events,
    async [Symbol.asyncDispose]() {
      await egress.close();
      await mirror.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
