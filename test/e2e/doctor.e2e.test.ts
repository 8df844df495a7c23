import { describe, expect, test } from "vitest";
import { DoctorReport } from "../../src/contract/machine/machine-verbs.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const { run, start, sandboxes } = useCaisson();
expectNothingLeftAfterEach(sandboxes);
const noEngine = { DOCKER_HOST: "unix:///no/such/engine.sock" };

describe("doctor", () => {
  test("reports what works, what does not, and how to fix it", async () => {
    const result = await run(["doctor"], { env: noEngine });
    expect(result.code).toBe(0);
    expect(result.text).toMatch(/^oci {2}usable, first output after/m);
    expect(result.text).toMatch(/^docker {2}not usable\n {2}✗ .*\n {6}fix: /m);
    expect(result.text).toMatch(/mounted +\/usr/);
    expect(result.text).toMatch(/auto uses oci\./);
    expect(result.text).not.toContain("\x1b[");
  });

  test("prints a report that matches the schema with --json", async () => {
    const report = DoctorReport.parse(JSON.parse((await run(["doctor", "--json"], { env: noEngine })).text));
    expect(report.chosen).toBe("oci");
    expect(report.runtimes.map((each) => [each.name, each.usable])).toEqual([
      ["oci", true],
      ["docker", false],
      ["host", true],
    ]);
    for (const runtime of report.runtimes) {
      for (const finding of runtime.findings) if (finding.level === "problem") expect(finding.fix, finding.text).toBeTruthy();
    }
  });

  test("checks one runtime by name, and exits with 1 if it is unusable", async () => {
    const result = await run(["doctor", "--runtime", "docker"], { env: noEngine });
    expect(result.code).toBe(1);
    expect(result.text).not.toMatch(/^host/m);
  });

  test("names every fix if no runtime works, and never falls back to the host", async () => {
    const nothing = { ...noEngine, CAISSON_OCI_RUNTIME: "no-such-runtime" };
    const doctor = await run(["doctor"], { env: nothing });
    expect(doctor.code).toBe(1);
    const exec = await run(["exec", "--", "true"], { env: nothing });
    expect(exec).toMatchObject({ code: 125, text: "" });
    expect(exec.stderr).toMatch(/no runtime[\s\S]*hint: oci: .*Fix: [\s\S]*hint: docker: /);
    const demo = await run(["demo"], { env: nothing });
    expect(demo.code).toBe(125);
    expect(demo.stderr).toMatch(/no runtime/);
  });

  test("names the runtime that suits a task with --for", async () => {
    const result = await run(["doctor", "--for", "sensitive,language=shell"], { env: noEngine });
    expect(result).toMatchObject({ code: 0, text: expect.stringMatching(/^--runtime oci, template host/) });
    expect((await run(["doctor", "--for", "cheap"])).code).toBe(125);
  });

  test("leaves nothing behind when interrupted", async () => {
    const { child, finished } = start(["doctor"], { env: noEngine });
    await new Promise((resolve) => setTimeout(resolve, 250));
    child.kill("SIGINT");
    const { code, signal } = await finished;
    expect([0, 130].includes(code ?? -1) || signal === "SIGINT").toBe(true);
  });
});

describe("demo", () => {
  test("holds everything it claims", async () => {
    const result = await run(["demo"], { env: noEngine });
    expect(result.text).not.toContain("✗ it");
    expect(result.text).toMatch(/Everything held\.\n$/);
    expect(result.text).toMatch(/median of \d+/);
    expect(result).toMatchObject({ code: 0, stderr: "" });
  });
  test("exits with a failure if a claim does not hold", async () => {
    const result = await run(["demo", "--runtime", "host"]);
    expect(result.code).not.toBe(0);
  });
});
