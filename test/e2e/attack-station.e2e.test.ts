import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SignedReport } from "../../src/contract/machine/attack-report.ts";
import { verifyReport } from "../../src/suites/attack/report.ts";
import { stationClaims } from "../../src/suites/station-attack/run-station-attacks.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

test("a station withstands the attack suite and signs the report", async () => {
  const file = join(cli.home(), "report.json");
  const { text, stderr } = await cli.run(["doctor", "--attack", "station", "--json", "--report", file]);
  const signed = JSON.parse(text) as SignedReport;
  const { verdicts } = signed.report;
  expect(
    verdicts.filter(({ verdict }) => verdict !== "observed").map(({ id, verdict, seen }) => `${id} ${verdict}: ${seen}`),
    stderr,
  ).toEqual([]);
  expect(verdicts.map(({ id }) => id)).toEqual(stationClaims.map(({ id }) => id));
  expect(verifyReport(JSON.parse(await readFile(file, "utf8")))).toBe(true);
  expect(verifyReport({ ...signed, report: { ...signed.report, runtime: "other" } })).toBe(false);
});

test("rejects unknown attack subjects, and options of the other suite", async () => {
  expect(await cli.run(["doctor", "--attack", "moon"])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining("moon cannot be attacked"),
  });
  const misplaced = await cli.run(["doctor", "--attack", "station", "--runtime", "oci"]);
  expect(misplaced).toMatchObject({ code: 125, stderr: expect.stringContaining("--runtime is for sandboxes") });
  expect(await cli.run(["doctor", "station"])).toMatchObject({ code: 125 });
});
