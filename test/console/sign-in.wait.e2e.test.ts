import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { barriers, useConsole } from "../support/console.ts";

const { openPage, run, token, tokenFor, url } = useConsole();

const readStoredToken = (page: Page) =>
  page.evaluate(() =>
    (globalThis as unknown as { localStorage: { getItem(key: string): string | null } }).localStorage.getItem("caisson.token"),
  );
const atRuns = (page: Page) => page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
const pathOf = (address: string) => address.slice(new URL(address).origin.length);
const tokenNames = async () => (JSON.parse((await run(["token", "ls", "--json"])).text) as { name: string }[]).map(({ name }) => name);

/** Returns the code in the address that `caisson console` prints for a user of a remote station. */
async function foreignCode(): Promise<string> {
  const admin = await tokenFor(`adas-${++admins}`, ["--scope", "admin", "--owner", "ada"]);
  const { url: address } = JSON.parse((await run(["console", "--scope", "run", "--json"], { env: elsewhere(admin) })).text);
  expect(address).toMatch(`${url()}/#code=`);
  return new URLSearchParams(new URL(address).hash.slice(1)).get("code") ?? "";
}
let admins = 0;
const elsewhere = (as: string) => ({ CAISSON_URL: url(), CAISSON_TOKEN: as });

describe("a signed-out browser", () => {
  test("can sign in once with the address that `caisson console` prints", async () => {
    const { url: address, name, scope } = JSON.parse((await run(["console", "--scope", "read", "--json"])).text);
    expect(await tokenNames()).not.toContain(name);
    const { page } = await openPage(pathOf(address), { token: null });
    await atRuns(page);
    expect(page.url()).not.toContain("code");
    const tokens = JSON.parse((await run(["token", "ls", "--json"])).text);
    expect(tokens).toContainEqual(expect.objectContaining({ name, scope, expiresAt: expect.any(String) }));
    await page.reload();
    await atRuns(page);
    const { page: second } = await openPage(pathOf(address), { token: null });
    await second.getByRole("heading", { name: "Sign in to this station" }).waitFor();
    await second.getByText(/sign-in code is invalid: .*caisson console/).waitFor();
    expect([await readStoredToken(second), second.url().includes("code")]).toEqual([null, false]);
    expect(await barriers(second)).toEqual([]);
  });

  test("ignores a token in the address, and says why", async () => {
    const { page } = await openPage(`/runs#token=${token()}`, { token: null });
    await page.getByText(/The address contained a token, which was ignored/).waitFor();
    expect([await readStoredToken(page), page.url().includes("token")]).toEqual([null, false]);
  });

  test("asks before a code from elsewhere signs it in", async () => {
    const code = await foreignCode();
    const { page } = await openPage(`/runs#code=${code}`, { token: null });
    await page.getByRole("heading", { name: "Sign in as ada?" }).waitFor();
    await page.getByText(/^ada, token console-[a-z2-7]+, scope run$/).waitFor();
    expect([await readStoredToken(page), page.url().includes("code")]).toEqual([null, false]);
    expect(await barriers(page)).toEqual([]);
    const before = await tokenNames();
    await page.getByRole("button", { name: "Do not sign in" }).click();
    await page.getByRole("heading", { name: "Sign in to this station" }).waitFor();
    expect(await tokenNames()).toEqual(before);
    // Opening the page does not use up the code; only a click does.
    await page.goto("about:blank");
    await page.goto(`${url()}/runs#code=${code}`);
    await page.getByRole("button", { name: "Sign in as ada" }).click();
    await atRuns(page);
    expect(await tokenNames()).toHaveLength(before.length + 1);
  });
});

test("`caisson console` explains how to sign in if its token may not register a code", async () => {
  const dora = await tokenFor("doras", ["--scope", "run", "--owner", "dora"]);
  const { code, stderr } = await run(["console"], { env: elsewhere(dora) });
  expect([code, stderr]).toEqual([125, expect.stringContaining(`Open ${url()} and paste the token of this context`)]);
});

describe("a signed-in browser", () => {
  test("asks before a code replaces its token, and shows the owners and scopes of both", async () => {
    const bob = await tokenFor("bobs", ["--scope", "run", "--owner", "bob"]);
    const { page } = await openPage("/runs", { token: bob });
    await atRuns(page);
    const code = await foreignCode();
    // A page of any other origin can do this.
    await page.goto("about:blank");
    await page.goto(`${url()}/runs#code=${code}`);
    await page.getByText("bob, token bobs, scope run").waitFor();
    await page.getByText(/^ada, token console-[a-z2-7]+, scope run$/).waitFor();
    expect([await readStoredToken(page), page.url().includes(code)]).toEqual([bob, false]);
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Stay signed in" }).click();
    await atRuns(page);
    expect(await readStoredToken(page)).toBe(bob);
    // Again, without loading a new page.
    await page.evaluate((signInCode) => {
      (globalThis as unknown as { location: { hash: string } }).location.hash = `code=${signInCode}`;
    }, code);
    await page.getByRole("button", { name: "Use the other token" }).click();
    await atRuns(page);
    expect([await readStoredToken(page), bob]).not.toEqual([bob, bob]);
    // The station rejects the code the second time, and the browser stays signed in.
    await page.goto("about:blank");
    await page.goto(`${url()}/runs#code=${code}`);
    await page.getByText(/sign-in code is invalid/).waitFor();
    await page.getByRole("button", { name: "Stay signed in" }).click();
    await atRuns(page);
  });

  test("keeps its token if the address contains another", async () => {
    const carl = await tokenFor("carls", ["--scope", "run", "--owner", "carl"]);
    const { page } = await openPage(`/runs#token=${token()}`, { token: carl });
    await atRuns(page);
    expect([await readStoredToken(page), page.url().includes("token")]).toEqual([carl, false]);
  });

  test("with an invalid token accepts its user's code without asking", async () => {
    const { url: address } = JSON.parse((await run(["console", "--json"])).text);
    const { page } = await openPage(pathOf(address), { token: `tok_${"a".repeat(12)}_${"b".repeat(52)}` });
    await atRuns(page);
  });
});
