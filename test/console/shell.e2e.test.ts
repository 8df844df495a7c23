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
    await page.getByRole("heading", { name: "Runs" }).waitFor();
    expect(page.url()).not.toContain("token");
    await page.reload();
    await page.getByRole("heading", { name: "Runs" }).waitFor();
  });

  test("a token that is revoked while the page is open leads back to signing in", async () => {
    const made = JSON.parse((await run(["token", "create", "short", "--json"])).text);
    const { page } = await openPage("/runs", { token: made.token });
    await page.getByRole("heading", { name: "Runs" }).waitFor();
    await run(["token", "rm", "short"]);
    await page.getByRole("heading", { name: "Sign in to this station" }).waitFor();
  });
});
