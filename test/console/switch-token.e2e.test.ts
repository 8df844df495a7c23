import { expect, test } from "vitest";
import { barriers, useConsole } from "../support/console.ts";

const { openPage, tokenFor, url } = useConsole();

test("a token in the address replaces no other one unasked; owners and scopes of both are shown", async () => {
  const bob = await tokenFor("bobs", ["--scope", "run", "--owner", "bob"]);
  const ada = await tokenFor("adas", ["--scope", "run", "--owner", "ada"]);
  const { page } = await openPage("/runs", { token: bob });
  await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  const kept = () =>
    page.evaluate(() =>
      (globalThis as unknown as { localStorage: { getItem(key: string): string | null } }).localStorage.getItem("caisson.token"),
    );
  // As any page of another origin can do it.
  await page.goto("about:blank");
  await page.goto(`${url()}/runs#token=${ada}`);
  await page.getByText("bob, token bobs, scope run").waitFor();
  await page.getByText("ada, token adas, scope run").waitFor();
  expect([await kept(), page.url().includes(ada)]).toEqual([bob, false]);
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  expect(await kept()).toBe(bob);
  // Without a new page, too.
  await page.evaluate((token) => {
    (globalThis as unknown as { location: { hash: string } }).location.hash = `token=${token}`;
  }, ada);
  await page.getByRole("button", { name: "Use the other token" }).click();
  await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  expect(await kept()).toBe(ada);
});
