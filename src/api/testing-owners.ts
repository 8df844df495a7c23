import { join } from "node:path";
import { expect } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";

/** Starts a server that drives one run at a time, for two owners who use the same names. */
export function useOwners() {
  const served = useServer({ bounds: { runsMax: 1 } });
  const { base, server, token } = served;
  const stateDir = () => join(base(), "state");

  async function clientOf(owner: string, scope: "read" | "run" | "admin" = "run"): Promise<Client> {
    return connect({ url: server().status.url, token: await token(scope, { owner }) });
  }

  async function twoOwners(): Promise<{ ada: Client; bob: Client; admin: Client }> {
    return { ada: await clientOf("ada"), bob: await clientOf("bob"), admin: await clientOf("local", "admin") };
  }

  return { ...served, stateDir, twoOwners };
}

/** Returns each call's error code, or `done`. */
export async function codesOf(calls: readonly Promise<unknown>[]): Promise<(string | undefined)[]> {
  const outcomes = await Promise.allSettled(calls);
  return outcomes.map((each) => (each.status === "rejected" ? (each.reason as { code?: string }).code : "done"));
}

/** Expects every call to fail as if the thing did not exist. */
export async function refused(calls: readonly Promise<unknown>[]): Promise<void> {
  expect(await codesOf(calls)).toEqual(calls.map(() => "not_found"));
}
