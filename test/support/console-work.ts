import type { Page } from "playwright-core";
import { type Client, connect } from "../../src/client/connect.ts";
import type { useConsole } from "./console.ts";

export const long = { timeout: 600_000 };
/** Long enough to start sandboxes on a busy machine. */
export const patient = { timeout: 240_000 };

/** Matches a text exactly, because the page of a workflow also has "work" in its heading. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name, exact: true });
/** Returns a node of the graph in a state. */
export const node = (page: Page, name: string, state: string) => page.getByRole("button", { name: new RegExp(`^${name} .*${state}`) });

/** Returns a client for the console's own station. */
export const stationOf = ({ url, token }: Pick<ReturnType<typeof useConsole>, "url" | "token">): Client =>
  connect({ url: url(), token: token() });
