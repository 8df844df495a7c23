import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeWorkCgroup, type WorkCgroup } from "./cgroup-for-test.ts";
import { run, shell, spawnIn, started } from "./guest-commands.ts";
import { useGuest } from "./guest-driver.ts";
import { argsFor, around, isRoot, useSudo } from "./init-for-test.ts";
import { statusOf, until } from "./machine-processes.ts";

const sudo = useSudo();

describe.skipIf(!isRoot)("process 1 with root allowed", () => {
  let work: WorkCgroup;
  beforeAll(() => {
    work = makeWorkCgroup({ pidsMax: 200, memoryBytes: 256 << 20 });
  });
  afterAll(async () => work?.[Symbol.asyncDispose]());
  const { link } = useGuest(() => ({
    around,
    ...argsFor(work, ["--allow-root", "--nproc", "40", "--uid", "54321", "--gid", "54321"]),
  }));

  test("gives root commands only the listed capabilities", async () => {
    const { stdout } = await shell(link, "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status", { user: "root" });
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, SETFCAP.
    expect(stdout).toBe("0\nCapEff:\t00000000800405fb\nCapBnd:\t00000000800405fb\nNoNewPrivs:\t1\n");
    expect((await shell(link, "mount -t tmpfs none /mnt 2>&1 || echo refused", { user: "root" })).stdout).toContain("refused");
  });

  test("applies the process limit to the user, not to the command", async () => {
    expect((await run(link, { argv: ["bash", "-c", "ulimit -u"] })).stdout).toBe("40\n");
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", "(while :; do sleep 63 & done); sleep 63; :"] });
    await started(stream);
    const owned = () => work.members().filter((pid) => statusOf(pid, "Uid") === 54_321).length;
    await until("the limit is reached", () => owned() === 40);
    // A uid at or past its limit can still execute the program that it was started for.
    const beyond = spawnIn(link, { argv: ["sleep", "63"] });
    await started(beyond.stream);
    expect((await run(link, { argv: ["echo", "works"] })).stdout).toBe("works\n");
    for (const each of [ref, beyond.ref]) expect(await link.ask("KILL", { ref: each })).toBe("OK");
  });

  describe("sudo", () => {
    test.each<[string, string, string, number]>([
      ["runs as root", "$sudo id -u", "0\n", 0],
      ["returns the exit code", "$sudo sh -c 'exit 7'", "", 7],
      ["returns the signal", "$sudo sh -c 'kill -TERM $$'", "", 143],
      ["passes stdin", "echo in | $sudo cat", "in\n", 0],
      ["sets variables", "$sudo -n A=b sh -c 'echo $A $USER $HOME'", "b root /root\n", 0],
      ["keeps the environment with -E", "X=1 $sudo -E sh -c 'echo $X'", "1\n", 0],
      ["drops the environment without -E", "X=1 $sudo sh -c 'echo [$X]'", "[]\n", 0],
      ["becomes another user", "$sudo -u nobody id -un", "nobody\n", 0],
      ["runs a shell line", "$sudo -s echo 'a  b' ';' c", "a  b ; c\n", 0],
      ["only checks with -v and -k", "$sudo -v && $sudo -k && echo fine", "fine\n", 0],
      ["keeps the folder", "cd /usr && $sudo pwd", "/usr\n", 0],
    ])("%s", async (_, script, stdout, exitCode) => {
      const result = await shell(link, script.replaceAll("$sudo", sudo));
      expect([result.stdout, result.ended.exitCode, result.stderr]).toEqual([stdout, exitCode, ""]);
    });

    test.each<[string, string, string]>([
      ["an unknown option", "-Z true", "-Z"],
      ["a missing program", "no-such-program", "no-such-program"],
      ["an unknown user", "-u no-such-user true", "no-such-user"],
      ["a missing command", "", "usage"],
    ])("explains what is wrong with %s", async (_, args, text) => {
      const { ended, stderr } = await shell(link, `${sudo} ${args}`);
      expect(ended.exitCode).toBe(1);
      expect(stderr).toContain(text);
    });

    test("forwards signals, and ends with its caller's tree", async () => {
      expect((await shell(link, `timeout -s INT 0.2 ${sudo} sleep 64; echo $?`)).stdout).toBe("124\n");
      const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", `${sudo} sleep 65; true`] });
      await started(stream);
      const sleeping = async () => (await run(link, { argv: ["pgrep", "-fxc", "sleep 6[45]"] })).stdout.trim();
      await until("it runs", async () => (await sleeping()) === "1");
      expect(await link.ask("KILL", { ref })).toBe("OK");
      await until("it has ended", async () => (await sleeping()) === "0");
    });
  });

  test("recovers when a root command stops every process it can reach", async () => {
    await shell(link, "echo; kill -STOP -1", { user: "root" });
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
    expect((await shell(link, "echo on")).stdout).toBe("on\n");
  });

  test("survives a root command that kills every process it can reach", async () => {
    const killer = spawnIn(link, { argv: ["sh", "-c", "kill -9 -1"], user: "root" });
    // Its supervisor dies with it, perhaps before it could report the start.
    await killer.stream.nextOther("STARTED");
    expect((await shell(link, "echo on")).stdout).toBe("on\n");
    // A killed file worker that has not ended yet may be given a request; later requests are answered.
    await until("file requests are answered", async () => (await link.ask("STAT", { path: "/" })) === "OK");
  });
});
