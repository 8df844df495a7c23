import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDockerEngine } from "../support/docker-engine.ts";
import { textWith } from "../support/network/canary.ts";
import { createInside, type Inside, socksReply, ways } from "../support/network/inside.ts";
import { type Internet, PUBLIC, startInternet } from "../support/network/internet.ts";
import { caissonOn, type MachineCaisson } from "../support/network/run-in.ts";
import { type OrdinaryUser, ordinaryUser } from "../support/ordinary-user.ts";

/**
 * Other tests cover oci as root in detail. The other runtimes share its egress and its guest, and differ in their
 * isolation.
 */
interface Wall {
  runtime: string;
  machine(internet: Internet): Promise<MachineCaisson>;
  close?(): void;
}

let user: OrdinaryUser | undefined;
const walls: Record<string, Wall> = {
  "oci without root": {
    runtime: "oci",
    async machine(internet) {
      user = ordinaryUser();
      return caissonOn(internet, { as: user });
    },
    close: () => user?.remove(),
  },
  docker: {
    runtime: "docker",
    async machine(internet) {
      const engine = await useDockerEngine();
      const image = await engine.image("debian");
      return caissonOn(internet, { env: { DOCKER_HOST: `unix://${engine.socketPath}`, CAISSON_DOCKER_IMAGE: image } });
    },
  },
};

describe.each(Object.entries(walls))("the network in %s", (_, wall) => {
  let internet: Internet;
  let machine: MachineCaisson;
  let inside: Inside;
  const seen = () => internet.world.seen({ take: true });
  beforeAll(async () => {
    internet = await startInternet();
    machine = await wall.machine(internet);
    const argv = [
      "--runtime",
      wall.runtime,
      "--network",
      "api.example.com,private.example.com,metadata.example.com",
      "--secret",
      "KEY@api.example.com;from=env:RIG_CANARY",
    ];
    inside = await createInside(machine, argv, { env: { RIG_CANARY: internet.canary } });
  });
  afterAll(async () => {
    await machine?.removeAll();
    await internet?.[Symbol.asyncDispose]();
    wall.close?.();
  });
  const get = (url: string, headers = "{}") =>
    `import os, urllib.request as u\ntry: print(u.urlopen(u.Request("${url}", headers=${headers})).read().decode())\nexcept Exception as e: print(e, e.read().decode() if hasattr(e, "read") else "")`;
  const python = async (script: string) => {
    const { code, stdout, stderr } = await inside.run(["python3", "-c", script], { input: "" });
    expect(code, stderr).toBe(0);
    return stdout;
  };

  test("reaches allowed hosts, and denies others with a reason", async () => {
    expect(await python(get("http://api.example.com/plain"))).toContain('"path":"/plain"');
    expect(await python(get("http://evil.example.net/"))).toMatch(/evil\.example\.net is not on this sandbox's list of allowed hosts/);
    expect(await python(get("https://evil.example.net/"))).toMatch(/Tunnel connection failed: 403 Denied by Caisson/);
  });

  test("reaches no private address, never bypasses the proxy and leaks no name", async () => {
    await seen();
    const before = await internet.world.packets();
    const names = ["c2VjcmV0.evil.example.net", "169.254.169.254", "10.0.0.5", "127.0.0.1"];
    const answers = await inside.exchange(names.flatMap((name) => [ways.request(name), ways.tunnel(name), ways.socks(name)]));
    for (const [index, answer] of answers.entries()) {
      if (index % 3 === 2) expect(socksReply(answer)).toBe(2);
      else expect(answer.text).toMatch(/^HTTP\/1\.1 403 /);
    }
    const direct = `
import socket
for family, kind, to in ((2, 1, ("${PUBLIC}", 80)), (2, 2, ("1.1.1.53", 53)), (10, 1, ("2606:4700::1111", 80)), (10, 2, ("2606:4700::1111", 53))):
    with socket.socket(family, kind) as s:
        s.settimeout(1)
        try: s.connect(to); s.send(b"secret"); print("went", to)
        except OSError as error: print("failed", to)
try: print("went", socket.getaddrinfo("c2VjcmV0.api.example.com", 80))
except OSError: print("failed")`;
    expect((await python(direct)).match(/went|failed/g)).toEqual(new Array(5).fill("failed"));
    expect(await internet.world.packets()).toBe(before);
    const privately = await inside.exchange(["private.example.com", "metadata.example.com"].map((name) => ways.request(name)));
    for (const { text } of privately) expect(text).toMatch(/private_address/);
    expect((await seen()).connections).toEqual([]);
  });

  test("delivers a secret to its host, and shows a placeholder inside", async () => {
    await seen();
    const response = await python(get("https://api.example.com/", '{"Authorization": os.environ["KEY"]}'));
    expect((await seen()).requests.map(({ headers }) => headers.authorization)).toEqual([internet.canary]);
    expect(response).toMatch(/"authorization":"ghp_\w{36}"/);
    expect(textWith(response, internet.canary)).toEqual([]);
  });

  test("applies changes at once, and fails closed until a killed server is replaced", async () => {
    expect((await machine.run(["net", "set", inside.id, "cdn.example.net"])).code).toBe(0);
    const [api, cdn] = await inside.exchange([ways.request("api.example.com"), ways.request("cdn.example.net")]);
    expect([api?.text.slice(9, 12), cdn?.text.slice(9, 12)]).toEqual(["403", "200"]);
    const { servedBy } = JSON.parse((await machine.run(["net", "show", inside.id, "--json"])).stdout) as { servedBy: number };
    const waiting = machine.start([
      "exec",
      "--sandbox",
      inside.id,
      "--",
      "python3",
      "-c",
      `print("ready", flush=True)\nimport time; time.sleep(0.7)\n${get("http://cdn.example.net/")}`,
    ]);
    await waiting.says(/ready/);
    process.kill(servedBy, "SIGKILL");
    expect((await waiting.finished).stdout).toMatch(/503/);
    const [again] = await inside.exchange([ways.request("cdn.example.net")]);
    expect(again?.text).toMatch(/^HTTP\/1\.1 200 /);
  });
});
