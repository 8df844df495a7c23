import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeWorkCgroup, type WorkCgroup } from "./cgroup-for-test.ts";
import { CANCELLED, MEMORY, TIMED_OUT } from "./ended-kinds.ts";
import { isSanitised } from "./files-client.ts";
import { finish, run, shell, spawnIn, started } from "./guest-commands.ts";
import { errorCode, useGuest } from "./guest-driver.ts";
import { argsFor, around, isRoot, useSudo } from "./init-for-test.ts";
import { childrenNamed, nameOf, ownSeconds, pidsSleeping, pidsWith, until } from "./machine-processes.ts";

const sudo = useSudo();

describe.skipIf(!isRoot)("process 1 with root not allowed", () => {
  let work: WorkCgroup;
  beforeAll(() => {
    work = makeWorkCgroup({ pidsMax: 120, memoryBytes: 96 << 20 });
  });
  afterAll(async () => work?.[Symbol.asyncDispose]());
  const { guest, link } = useGuest(() => ({ around, ...argsFor(work) }));

  test("runs commands as another user, without any capability to use or gain", async () => {
    const { stdout } = await shell(link, "id -u; id -g; id -G; grep -E '^(Cap|NoNewPrivs)' /proc/self/status");
    const [uid, gid, groups, ...status] = stdout.trim().split("\n");
    expect([uid, gid, groups]).toEqual(["1000", "1000", "1000"]);
    expect(status.map((line) => line.split("\t")[1])).toEqual([..."01234"].map(() => "0000000000000000").concat("1"));
  });

  test("cannot be read, traced or signaled", async () => {
    const { stdout } = await shell(
      link,
      "for p in /proc/[0-9]*; do [ $(stat -c %u $p) = 0 ] && cat $p/mem $p/environ $p/maps $p/fd/0 $p/exe; done 2>&1 | grep -v denied | head; kill -9 1 2>&1; kill -9 $PPID 2>&1; strace -p 1 2>&1 | tail -1",
    );
    expect(stdout.split("\n").filter((line) => line !== "" && !/not permitted|denied/i.test(line))).toEqual([]);
    await link.ping();
  });

  test("survives kill -9 -1, which ends only the caller's own processes", async () => {
    const bystander = spawnIn(link, { argv: ["sleep", "60"] });
    await started(bystander.stream);
    await shell(link, "kill -9 -1");
    expect((await finish(link, bystander.stream)).ended).toMatchObject({ kind: 2, signal: 9 });
    expect((await shell(link, "echo on")).stdout).toBe("on\n");
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
  });

  test("serves file requests while a command keeps stopping what it can reach", async () => {
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
    const stopper = spawnIn(link, { argv: ["bash", "-c", "echo; while :; do kill -STOP -1; done"] });
    await stopper.stream.nextOther("STARTED");
    for (let round = 0; round < 20; round++) expect(await link.ask("STAT", { path: "/" })).toBe("OK");
    // The command has the same uid as the stopper, and is stopped; the guest enforces its time limit.
    expect((await run(link, { argv: ["sleep", "60"], timeoutMs: 300 })).ended.kind).toBe(TIMED_OUT);
    expect(await link.ask("KILL", { ref: stopper.ref })).toBe("OK");
    expect((await shell(link, "echo on")).stdout).toBe("on\n");
  });

  test("gives a file worker the user's file permissions and nothing else", async () => {
    const watch = link.open("WATCH", { path: "/" });
    expect((await watch.next()).type).toBe("OK");
    const { stdout } = await shell(
      link,
      `for p in /proc/[0-9]*; do grep -q caisson-files $p/comm || continue
         grep -E '^(Uid|CapEff)' $p/status; p=\${p#/proc/}
         kill -STOP $p 2>&1; renice 19 $p 2>&1; prlimit --pid $p --nofile=1:1 2>&1; done`,
    );
    expect(stdout).toContain("Uid:\t65520\t65520\t65520\t1000\nCapEff:\t0000000000000000");
    expect(stdout.match(/not permitted/g)?.length).toBe(3 * (stdout.match(/Uid/g)?.length ?? 0));
    expect(await link.ask("STAT", { path: "/", user: "65520" })).toBe("denied");
    expect(await link.ask("MKDIR", { path: "/root/theirs" })).toBe("denied");
    link.frame("CANCEL", watch.id);
  });

  test.skipIf(!existsSync("/sys/fs/cgroup/freezer"))("delays ENDED until a killed tree has ended, but not indefinitely", async () => {
    const folder = `/sys/fs/cgroup/freezer/caisson-test-${process.pid}`;
    mkdirSync(folder);
    const freeze = (state: "FROZEN" | "THAWED") => writeFileSync(`${folder}/freezer.state`, state);
    try {
      const seconds = ownSeconds(67);
      for (const [held, thaws] of [
        [`sleep\0${seconds}`, true],
        [`sleep ${seconds}`, false],
      ] as const) {
        const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", `sleep ${seconds} & wait`] });
        await started(stream);
        await until("it sleeps", () => pidsSleeping(seconds).length > 0);
        // A frozen process cannot die, like one in the middle of a write to a hanging disk.
        for (const pid of pidsWith(held)) writeFileSync(`${folder}/cgroup.procs`, String(pid));
        freeze("FROZEN");
        await until("it is frozen", () => readFileSync(`${folder}/freezer.state`, "utf8") === "FROZEN\n");
        const killed = link.ask("KILL", { ref });
        const ended = finish(link, stream);
        if (thaws) expect(await Promise.race([ended.then(() => "ended"), delay(500, "waits")])).toBe("waits");
        else await ended;
        freeze("THAWED");
        expect((await ended).ended.kind).toBe(CANCELLED);
        expect(await killed).toBe("OK");
        expect(pidsWith(`${seconds} & wait`)).toEqual([]);
        expect(pidsSleeping(seconds)).toEqual([]);
      }
    } finally {
      freeze("THAWED");
      await until("the group is empty", () => readFileSync(`${folder}/cgroup.procs`, "utf8") === "");
      rmdirSync(folder);
    }
  });

  test("refuses root by name, by number, for files and by sudo", async () => {
    for (const user of ["root", "0"]) {
      expect(errorCode(await spawnIn(link, { argv: ["true"], user }).stream.next())).toBe("denied");
      expect(await link.ask("STAT", { path: "/", user })).toBe("denied");
    }
    const { stderr, ended } = await run(link, { argv: [sudo, "id"] });
    expect([ended.exitCode, stderr]).toEqual([1, "sudo: this sandbox does not allow root\n"]);
  });

  test("runs commands as a numeric uid without capabilities", async () => {
    expect((await shell(link, "id -u; id -G; grep CapEff /proc/self/status", { user: "4321" })).stdout).toBe(
      "4321\n4321\nCapEff:\t0000000000000000\n",
    );
  });

  test("starts commands in the work cgroups, and stays outside", async () => {
    const { pid } = await run(link, { argv: ["true"] });
    expect(pid).toBeGreaterThan(1);
    const { stream, ref } = spawnIn(link, { argv: ["sleep", "61"] });
    await started(stream);
    const inside = work.members().map(nameOf);
    expect(inside).toEqual(expect.arrayContaining(["caisson-spawn", "caisson-super", "sleep"]));
    expect(inside).not.toContain("caisson-guest");
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("reaps what a command left behind", async () => {
    await shell(link, "for i in 1 2 3 4 5; do (setsid true &) ; done; (sleep 0.1 &)");
    await until(
      "no zombies",
      async () => (await shell(link, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true")).stdout === "0\n",
    );
  });

  test("reports a command that ran out of memory, and survives", async () => {
    const { ended } = await run(link, { argv: ["tail", "/dev/zero"] });
    expect(ended).toMatchObject({ kind: MEMORY, signal: 9 });
    expect(ended.memoryKills).toBeGreaterThan(0);
    const later = await shell(link, "kill -9 $$");
    expect(later.ended).toMatchObject({ kind: 2, signal: 9, memoryKills: 0 });
  });

  test("answers pings, commands and files during a fork bomb, and can kill it", async () => {
    const bomb = spawnIn(link, { argv: ["bash", "-c", "b() { while :; do b & done; }; b"] });
    await started(bomb.stream);
    await until("the limit is reached", () => work.members().length >= 119);
    await link.ping();
    const command = await run(link, { argv: ["echo", "works"] });
    expect(command.stdout).toBe("works\n");
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
    expect(await link.ask("KILL", { ref: bomb.ref })).toBe("OK");
    expect((await finish(link, bomb.stream)).ended.kind).toBe(CANCELLED);
    await until("only the guest's own processes remain", () => work.members().length <= 5);
    expect((await shell(link, "echo after | cat")).stdout).toBe("after\n");
  });

  test("serves the host while the work cgroups stay full", async () => {
    // The failing loop gives the last place back, and the last sleep takes it.
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", "(while :; do sleep 64 & done); sleep 64; :"] });
    await started(stream);
    await until("the limit is reached", () => work.members().length === 120);
    const inside = await run(link, { argv: ["cat", "/proc/self/cgroup"] });
    // The guest itself started it, but it is in the work cgroups anyway.
    expect(inside.stdout).toContain("caisson-test-");
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
    expect(await link.ask("KILL", { ref })).toBe("OK");
    await until("only the guest's own processes remain", () => work.members().length <= 6);
  });

  test("sends heartbeats, and is small when idle", async () => {
    const had = link.heartbeats.length;
    // The first one may still count processes that earlier tests ended.
    await until("a heartbeat of an idle guest", () => link.heartbeats.slice(had).some(({ processes }) => processes === 0));
    if (isSanitised) return;
    const main = childrenNamed(guest.child.pid as number, "caisson-guest")[0] as number;
    const spawner = childrenNamed(main, "caisson-spawn")[0] as number;
    const privateKilobytes = [main, spawner, ...childrenNamed(spawner, "caisson-super")]
      .map((pid) => readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))
      .flatMap((text) => text.split("\n").filter((line) => line.startsWith("Private_Dirty")))
      .reduce((sum, line) => sum + Number(line.split(/\s+/)[1]), 0);
    expect(privateKilobytes).toBeLessThan(1_024);
  });
});
