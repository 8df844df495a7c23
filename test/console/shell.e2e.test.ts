import { describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";

const { openPage, run, token } = useConsole();

describe("signing in", () => {
  test("a wrong token is refused in words, a right one is kept, and the address keeps none", async () => {
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

  test("a token that is revoked while the page is open leads back to signing in", async () => {
    const made = JSON.parse((await run(["token", "create", "short", "--json"])).text);
    const { page } = await openPage("/runs", { token: made.token });
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await run(["token", "rm", "short"]);
    await page.getByRole("heading", { name: "Sign in to this station" }).waitFor();
  });
});

describe("starting", () => {
  test("the demo runs at a press, and the form says what is wrong before anybody is asked", async () => {
    const { page } = await openPage("/welcome");
    await page.getByRole("button", { name: "Start the demo run" }).click();
    await page.waitForURL(/\/runs\/run_/);
    const started = new URL(page.url()).pathname.split("/")[2] ?? "";
    await expect
      .poll(async () => JSON.parse((await run(["ps", "--all", "--json"])).text))
      .toContainEqual(expect.objectContaining({ run: started, status: "done" }));
    await page.goto(new URL("/start", page.url()).href);
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.getByText("There is no task.").waitFor();
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
    "%s is there for everybody",
    async (part) => {
      const { page } = await openPage(`/settings/${part}`);
      await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(await barriers(page)).toEqual([]);
      await picture(page, `settings-${part}`);
    },
  );

  test("nothing of them is cut off on a phone", async () => {
    const { page } = await openPage("/settings/tokens", { phone: true });
    await page.getByRole("list", { name: "Tokens" }).getByRole("button", { name: "Revoke" }).first().waitFor();
    for (const part of ["Tokens", "Secrets", "Agents", "Storage", "Audit", "Shortcuts"]) {
      await page.getByRole("navigation", { name: "Parts of the settings" }).getByRole("link", { name: part }).click();
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

  test("a token is shown once, and revoked by a press", async () => {
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

  test("the palette goes anywhere by a few letters, and keys do", async () => {
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
