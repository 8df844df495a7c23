import { expect, test } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { barriers, useConsole } from "../support/console.ts";

const { openPage, url, token } = useConsole();

const asking = (name: string, text: string) => ({ definition: { name, steps: [{ name: "sure", kind: "approval", text }] } });

/** Hides the page, and records the notifications that the browser would show. */
const hiddenPage = `
  globalThis.told = [];
  Object.defineProperty(document, "hidden", { get: () => true });
  globalThis.Notification = Object.assign(function (title, { body }) { told.push(title + ": " + body); }, { permission: "granted" });
`;

test("a workflow's question notifies the browser and can be answered in the inbox", async () => {
  const client = connect({ url: url(), token: token() });
  const { page } = await openPage("/inbox");
  await page.getByText("Nothing is waiting for you").waitFor();
  await page.evaluate(hiddenPage);
  const { id } = await client.workflows.start(asking("release", "Release <b>it</b>?"));
  const rejected = await client.workflows.start(asking("remove", "Remove everything?"));
  const release = page.getByRole("listitem").filter({ hasText: "Release <b>it</b>?" });
  const remove = page.getByRole("listitem").filter({ hasText: "Remove everything?" });
  await release.waitFor();
  await remove.waitFor();
  await page.getByRole("img", { name: "2 waiting" }).waitFor();
  const icon = () => page.locator("#favicon").getAttribute("href");
  await expect.poll(icon).toBe("/favicon-waiting.svg");
  expect(await barriers(page)).toEqual([]);
  expect(await release.getByRole("link", { name: "release" }).getAttribute("href")).toBe(`/workflows/${id}`);
  const readNotifications = () => page.evaluate<string[]>("globalThis.told");
  await expect.poll(async () => (await readNotifications()).sort()).toEqual(["release: Release <b>it</b>?", "remove: Remove everything?"]);
  await release.getByRole("button", { name: "Approve" }).click();
  await remove.getByLabel("Note to the workflow").fill("Not today.");
  await remove.getByRole("button", { name: "Reject" }).click();
  await page.getByText("Nothing is waiting for you").waitFor();
  await expect.poll(icon).toBe("/favicon.svg");
  expect((await client.workflows.wait(id)).finish).toBe("completed");
  const { steps } = await client.workflows.wait(rejected.id);
  expect(JSON.stringify(steps)).toContain("Not today.");
});
