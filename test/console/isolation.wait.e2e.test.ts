import { expect, test } from "vitest";
import type { SignedReport } from "../../src/contract/machine/attack-report.ts";
import { barriers, useConsole } from "../support/console.ts";

const { openPage } = useConsole();

/** Bounds hangs: the attacks take seconds alone, and minutes on a busy machine. */
const ATTACKS_MS_MAX = 240_000;

/** Attacks the runtime without walls, which is the quickest; the report says what did not hold. */
test("the page attacks a runtime, then shows and saves the signed report", { timeout: 300_000 }, async () => {
  const { page } = await openPage("/settings/isolation");
  await page.getByRole("combobox", { name: "Runtime" }).selectOption("host");
  await page.getByRole("button", { name: "Run the attacks" }).click();
  await page.getByText(/Running… [1-9]\d* attacks? so far/).waitFor({ timeout: ATTACKS_MS_MAX });
  await page.getByText("isolation failed", { exact: true }).waitFor({ timeout: ATTACKS_MS_MAX });
  expect(await barriers(page)).toEqual([]);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the signed report" }).click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await saved.createReadStream()) chunks.push(chunk as Buffer);
  const signed = JSON.parse(Buffer.concat(chunks).toString()) as SignedReport;
  expect(signed).toMatchObject({ report: { runtime: "host", holds: false }, signature: { algorithm: "ed25519" } });
  const count = await page.getByRole("list", { name: "Attacks" }).getByRole("listitem").count();
  expect(count).toBe(signed.report.verdicts.length);
  expect(count).toBeGreaterThan(30);
});
