import { describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";

const { openPage, run, token } = useConsole();

describe("signing in", () => {
  test("rejects a wrong token, stores a valid one, and keeps none in the address", async () => {
    const { page } = await openPage("/runs", { token: "tok_wrong" });
    await page.getByLabel("Token").fill("tok_wrong_again");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the token is not valid").waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, "sign-in");
    await page.getByLabel("Token").fill(token());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    expect(page.url()).not.toContain("token");
    await page.reload();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  });

  test("is required again when the token is revoked while the page is open", async () => {
    const newToken = JSON.parse((await run(["token", "create", "short", "--json"])).text);
    const { page } = await openPage("/runs", { token: newToken.token });
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await run(["token", "rm", "short"]);
    await page.getByRole("heading", { name: "Sign in to this station" }).waitFor();
  });
});

describe("starting a run", () => {
  test("takes one click for the demo, and needs a task in the form", async () => {
    const { page } = await openPage("/welcome");
    await page.getByRole("button", { name: "Start the demo run" }).click();
    await page.waitForURL(/\/runs\/run_/);
    const started = new URL(page.url()).pathname.split("/")[2] ?? "";
    await expect
      .poll(async () => JSON.parse((await run(["ps", "--all", "--json"])).text))
      .toContainEqual(expect.objectContaining({ run: started, status: "done" }));
    await page.goto(new URL("/start", page.url()).href);
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.getByText("Must not be empty.").waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, "start");
    await page.getByLabel("Task").fill("Say what there is.");
    await page.getByLabel("Model").fill("scripted:demo");
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.waitForURL(/\/runs\/run_/);
  });
});

describe("settings", () => {
  test.each(["look", "tokens", "secrets", "agents", "doctor", "isolation", "storage", "audit", "shortcuts"])(
    "the page %s is accessible",
    async (part) => {
      const { page } = await openPage(`/settings/${part}`);
      await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(await barriers(page)).toEqual([]);
      await picture(page, `settings-${part}`);
    },
  );

  test("fit on a phone", async () => {
    const { page } = await openPage("/settings/tokens", { phone: true });
    await page.getByRole("list", { name: "Tokens" }).getByRole("button", { name: "Revoke" }).first().waitFor();
    for (const part of ["Tokens", "Secrets", "Agents", "Storage", "Audit", "Shortcuts"]) {
      await page.getByRole("navigation", { name: "Settings sections" }).getByRole("link", { name: part }).click();
      await page.waitForURL(new RegExp(part.toLowerCase()));
      await page.waitForLoadState("networkidle");
      const wide = await page
        .locator("main *:not(nav *)")
        .evaluateAll(
          (found, width) => found.filter((each) => each.getBoundingClientRect().right > width).map((each) => each.outerHTML),
          391,
        );
      expect(wide, part).toEqual([]);
      expect(await barriers(page)).toEqual([]);
    }
  });

  test("show a new token once, and revoke a token with one click", async () => {
    const { page } = await openPage("/settings/tokens");
    await page.getByLabel("Name").fill("laptop");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("laptop: copy it now").waitFor();
    await page
      .getByRole("row", { name: /laptop/ })
      .getByRole("button", { name: "Revoke" })
      .click();
    await page.getByRole("row", { name: /laptop/ }).waitFor({ state: "detached" });
  });

  test("the palette and shortcuts open other pages", async () => {
    const { page } = await openPage("/runs");
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("A page, a run, a sandbox…").fill("sandb");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Sandboxes", exact: true }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("i");
    await page.getByRole("heading", { name: "Inbox", exact: true }).waitFor();
    expect(await barriers(page)).toEqual([]);
  });
});
