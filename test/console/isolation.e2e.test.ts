import { expect, test } from "vitest";
import type { SignedReport } from "../../src/contract/attack-report.ts";
import { barriers, useConsole } from "../support/console.ts";

const { openPage } = useConsole();

/** A bound for what hangs: the attacks take seconds by themselves, and minutes on a machine with much else to do. */
const ATTACKS_MS_MAX = 240_000;

/** Of the runtime without walls, whose attacks are the quickest: what did not hold is told as that. */
test("the walls of a runtime are tried from the page, and its signed report is shown and saved", { timeout: 300_000 }, async () => {
  const { page } = await openPage("/settings/isolation");
  await page.getByRole("combobox", { name: "Runtime" }).selectOption("host");
  await page.getByRole("button", { name: "Try the walls" }).click();
  await page.getByText(/Trying… [1-9]\d* attacks? so far/).waitFor({ timeout: ATTACKS_MS_MAX });
  await page.getByText("a wall did not hold").waitFor({ timeout: ATTACKS_MS_MAX });
  expect(await barriers(page)).toEqual([]);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the signed report" }).click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await saved.createReadStream()) chunks.push(chunk as Buffer);
  const signed = JSON.parse(Buffer.concat(chunks).toString()) as SignedReport;
  expect(signed).toMatchObject({ report: { runtime: "host", holds: false }, signature: { algorithm: "ed25519" } });
  const shown = await page.getByRole("list", { name: "Attacks" }).getByRole("listitem").count();
  expect(shown).toBe(signed.report.verdicts.length);
  expect(shown).toBeGreaterThan(30);
});
