import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { PUBLIC, startInternet } from "./internet.ts";
import { useMachine } from "./run-in.ts";

/** Checks what the network tests assume about the rig. A rig that cannot see a packet would prove nothing. */
describe("the rig", () => {
  const machine = useMachine();
  const curl = async (...argv: string[]) => (await machine.program(["curl", "-sS", "--max-time", "5", ...argv])).stdout;

  test("has its own names, servers and authorities", async () => {
    const echo = JSON.parse(await curl("https://api.example.com/x?y=1", "-d", "body")) as object;
    expect(echo).toMatchObject({ method: "POST", path: "/x?y=1", body: "body", headers: { host: "api.example.com" } });
    const { requests, connections, questions } = await machine.internet.world.seen({ take: true });
    expect(requests).toMatchObject([{ address: PUBLIC, port: 443, tls: true, servername: "api.example.com", path: "/x?y=1" }]);
    expect(connections).toEqual([{ address: PUBLIC, port: 443 }]);
    expect(questions).toContainEqual({ name: "api.example.com", type: "A" });
    for (const name of ["wrong-name", "unknown-ca", "expired"]) {
      const refused = await machine.program(["curl", "-sS", `https://${name}.example.com/`]);
      expect(refused, name).toMatchObject({ code: 60, stdout: "" });
    }
  });

  test("receives and counts every packet that leaves the machine", async () => {
    const { world } = machine.internet;
    for (const address of ["10.0.0.5", "169.254.169.254", "192.168.7.7", "100.64.1.1", "8.8.8.8", "[fd00:ec2::254]", "[2606:4700::1111]"]) {
      const before = await world.packets();
      expect(JSON.parse(await curl(`http://${address}/`)), address).toMatchObject({ path: "/" });
      expect(await world.packets(), address).toBeGreaterThan(before);
    }
    const { connections } = await world.seen({ take: true });
    expect(connections.map(({ address }) => address)).toContain("169.254.169.254");
    const before = await world.packets();
    const send = "import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM, KIND).sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('9.9.9.9', 53))";
    for (const kind of ["s.IPPROTO_UDP", "s.IPPROTO_ICMP"]) await machine.program(["python3", "-c", send.replace("KIND", kind)]);
    expect((await world.packets()) - before).toBeGreaterThanOrEqual(2);
    expect(JSON.parse(await curl("http://127.0.0.1:8080/own"))).toMatchObject({ path: "/own" });
    expect((await machine.internet.machine.seen({ take: true })).requests).toMatchObject([{ address: "127.0.0.1", path: "/own" }]);
  });

  test("counts no packet that was not sent", async () => {
    const { world } = machine.internet;
    const before = await world.packets();
    await machine.program(["sleep", "1"]);
    expect(await world.packets()).toBe(before);
  });

  test("can change a name's address between two queries", async () => {
    const { world } = machine.internet;
    await world.setName("rebind.example.com", [[PUBLIC], ["10.0.0.5"]]);
    await curl("-4", "http://rebind.example.com/first", "--next", "-4", "http://rebind.example.com/second");
    await curl("-4", "http://rebind.example.com/third");
    expect((await world.seen({ take: true })).requests.map(({ address, path }) => [address, path])).toContainEqual(["10.0.0.5", "/third"]);
  });

  test("serves git over https, with a token for pushes", async () => {
    const { internet, folder } = machine;
    const url = internet.repository("project");
    const git = (...argv: string[]) => machine.program(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", ...argv]);
    expect(await git("clone", "-q", url, "copy")).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(`${folder}/copy/README`, "utf8")).toBe("from the rig\n");
    await git("-C", "copy", "commit", "-q", "--allow-empty", "-m", "second");
    expect((await machine.program(["git", "-C", "copy", "push", "-q"], { env: { GIT_TERMINAL_PROMPT: "0" } })).code).not.toBe(0);
    const pushed = await git("-C", "copy", "push", url.replace("//", `//x-access-token:${internet.canary}@`), "HEAD");
    expect(pushed.code, pushed.stderr).toBe(0);
  });

  test("runs caisson on its machine", async () => {
    const ran = await machine.run(["exec", "--no-workspace", "--", "sh", "-c", "echo inside; ls /sys/class/net"]);
    expect(ran).toMatchObject({ code: 0, stdout: "inside\nlo\n", stderr: "" });
  });
});

test("a closed rig leaves nothing behind", async () => {
  const internet = await startInternet();
  const names = execFileSync("ip", ["netns", "list"], { encoding: "utf8" }).match(new RegExp(`caisson-test-${process.pid}-\\S+`, "g"));
  expect(names).toHaveLength(2);
  await internet[Symbol.asyncDispose]();
  expect(execFileSync("ip", ["netns", "list"], { encoding: "utf8" })).not.toContain(`caisson-test-${process.pid}-`);
  expect(existsSync(internet.folder)).toBe(false);
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain("caisson-test-internet");
});
