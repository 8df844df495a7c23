import type { Page } from "playwright-core";
import { type Client, connect } from "../../src/client/connect.ts";
import type { useConsole } from "./console.ts";

export const long = { timeout: 600_000 };
/** Sandboxes are started behind what is waited for, on a machine that may be busy. */
export const patient = { timeout: 240_000 };

/** Exactly where it is a text: a page of a workflow has "work" in its heading, too. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name, exact: true });
/** A node of the graph, in a state. */
export const node = (page: Page, name: string, state: string) => page.getByRole("button", { name: new RegExp(`^${name} .*${state}`) });

/** The console's own station, over its API. */
export const stationOf = ({ url, token }: Pick<ReturnType<typeof useConsole>, "url" | "token">): Client =>
  connect({ url: url(), token: token() });
