import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../../contract/sandbox/sandbox.ts";
import { runCommand } from "../../../sandbox/run-command.ts";
import type { InboundConnection, OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { readText } from "../../../sandbox/text.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";

const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const network = { mode: "allow", transparent: true } as const;

let stateDir: string;
let runtime: OciRuntime;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  runtime = createOciRuntime(
    { stateDir, guestPath },
    { home: "/root", path: process.env.PATH ?? "", pool: { sandboxes: 1, networkNamespaces: 1 } },
  );
});
afterEach(async () => {
  await runtime[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true, force: true });
});

const create = (config: SandboxConfigInput) => runtime.create(SandboxConfig.parse(config));
const python = async (sandbox: OwnedSandbox, ...lines: string[]) => {
  const { stdout, stderr } = await runCommand(sandbox, { argv: ["python3", "-c", ["import socket", ...lines].join("\n")] });
  return `${stdout}${stderr}`.trim();
};
const sayWhere = ({ stream, destination }: InboundConnection) =>
  void text(stream).then(() => stream.end(`${destination?.address} ${destination?.port}`));
const ask = (address: string, port: number) => [
  `s=socket.create_connection((${JSON.stringify(address)},${port}),5); s.shutdown(1); print(s.recv(100).decode())`,
];

it("carries IPv4 and IPv6 connections, even from a prepared namespace", async () => {
  await runtime.warm();
  await using sandbox = await create({ network });
  await sandbox.serveTransparent({ ports: [22, 443], onConnection: sayWhere, onDatagram: () => null });
  expect(await python(sandbox, ...ask("93.184.216.34", 443))).toBe("93.184.216.34 443");
  expect(await python(sandbox, ...ask("2606:4700::1111", 22))).toBe("2606:4700::1111 22");
  expect(await python(sandbox, ...ask("93.184.216.34", 80))).toContain("ConnectionRefusedError");
});

it("prepared sandboxes are ordinary: neither routes nor guest serve every address", async () => {
  await using first = await create({ network });
  await first.serveTransparent({ ports: [80], onConnection: sayWhere, onDatagram: () => null });
  await runtime.warm();
  await using second = await create({ network: { mode: "allow" } });
  expect(await python(second, ...ask("93.184.216.34", 80))).toContain("Network is unreachable");
  await expect(second.serveTransparent({ ports: [80], onConnection: sayWhere, onDatagram: () => null })).rejects.toMatchObject({
    code: "unsupported",
  });
});

it("two sandboxes cannot reach each other: each owns every address", async () => {
  await using first = await create({ network });
  await using second = await create({ network });
  for (const [name, sandbox] of [
    ["first", first],
    ["second", second],
  ] as const) {
    const onConnection = ({ stream }: InboundConnection) => void text(stream).then(() => stream.end(name));
    await sandbox.serveTransparent({ ports: [80], onConnection, onDatagram: () => null });
  }
  for (const address of ["192.0.2.2", "10.0.0.1"]) {
    expect(await python(first, ...ask(address, 80))).toBe("first");
    expect(await python(second, ...ask(address, 80))).toBe("second");
  }
});

it("a new set of ports replaces the first without a gap", async () => {
  await using sandbox = await create({ network });
  const service = (words: string) => ({
    onConnection: ({ stream }: InboundConnection) => void text(stream).then(() => stream.end(words)),
    onDatagram: () => null,
  });
  const before = await sandbox.serveTransparent({ ports: [80], ...service("before") });
  expect(await python(sandbox, ...ask("192.0.2.1", 80))).toBe("before");
  await sandbox.serveTransparent({ ports: [80, 8080], ...service("after") });
  before.close();
  expect(await python(sandbox, ...ask("192.0.2.1", 80))).toBe("after");
  expect(await python(sandbox, ...ask("192.0.2.1", 8080))).toBe("after");
});

it("replaces an image's resolver, even a dangling link", async () => {
  for (const kind of ["link", "file", "none"]) {
    const root = join(stateDir, `image-${kind}`);
    mkdirSync(join(root, "etc"), { recursive: true });
    if (kind === "link") symlinkSync("../run/systemd/resolve/stub-resolv.conf", join(root, "etc/resolv.conf"));
    if (kind === "file") writeFileSync(join(root, "etc/resolv.conf"), "nameserver 8.8.8.8\n");
    await using sandbox = await create({ network, template: { kind: "image", reference: root } });
    expect(await readText(sandbox, "/etc/resolv.conf")).toMatch(/^nameserver 127\.0\.0\.1$/m);
    await expect(sandbox.stat("/etc/nsswitch.conf")).rejects.toMatchObject({ code: "not_found" });
  }
});

it("programs inside cannot bind the guest's ports or change the routes", async () => {
  await using sandbox = await create({ network, allowRoot: true });
  expect(await python(sandbox, 's=socket.socket(); s.bind(("0.0.0.0",443))')).toContain("PermissionError");
  const routes = await runCommand(sandbox, {
    argv: ["sh", "-c", "ip route flush table local; ip link set lo down; ip route add blackhole default"],
    user: "root",
  });
  expect(routes.stderr).toMatch(/not permitted|not found/);
});
