import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { readEnvironment } from "./environment.ts";

const ownHome = userInfo().homedir;

test.each([
  ["the user's home", { HOME: "/home/me" }, "/home/me/.local/state/caisson", "/home/me/.config/caisson"],
  ["no variable at all", {}, `${ownHome}/.local/state/caisson`, `${ownHome}/.config/caisson`],
  ["an empty home", { HOME: "" }, `${ownHome}/.local/state/caisson`, `${ownHome}/.config/caisson`],
  ["a relative home", { HOME: "me" }, `${ownHome}/.local/state/caisson`, `${ownHome}/.config/caisson`],
  ["XDG folders", { HOME: "/home/me", XDG_STATE_HOME: "/s", XDG_CONFIG_HOME: "/c" }, "/s/caisson", "/c/caisson"],
  [
    "relative XDG folders, which are not valid",
    { HOME: "/home/me", XDG_STATE_HOME: "s", XDG_CONFIG_HOME: "c" },
    "/home/me/.local/state/caisson",
    "/home/me/.config/caisson",
  ],
  ["a separate state folder", { HOME: "/home/me", CAISSON_HOME: "/elsewhere" }, "/elsewhere", "/home/me/.config/caisson"],
])("derives the folders from %s", (_from, variables, stateDir, configDir) => {
  expect(readEnvironment(variables)).toMatchObject({ stateDir, configDir });
});
