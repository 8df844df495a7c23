import { expect, test } from "vitest";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { shipTarget } from "./ship-target.ts";

const source: WorkspaceSource = {
  kind: "git",
  url: "https://user:password@github.com/team/project.git",
  branch: "next",
  submodules: false,
};

test("defaults to the source repository, without the password in its URL", () => {
  expect(shipTarget({}, source)).toEqual({
    forge: "github",
    remote: "https://github.com/team/project.git",
    into: "next",
    token: "GITHUB_TOKEN",
    allowPrivate: false,
  });
});

test("uses the requested remote, forge, branch and token", () => {
  expect(shipTarget({ to: "https://git.example.com/team/project/", forge: "gitea", token: "MINE", into: "main" }, source)).toEqual({
    forge: "gitea",
    remote: "https://git.example.com/team/project",
    into: "main",
    token: "MINE",
    allowPrivate: false,
  });
  expect(shipTarget({ to: "file:///srv/my%20git/project.git/" }, source)).toMatchObject({
    forge: "git",
    remote: "/srv/my git/project.git",
    token: null,
  });
});

test.each([
  ["git@github.com:team/project.git", /SSH/],
  ["ssh://git@git.example.com:22/team/project", /SSH/],
  ["ext::sh -c id", /not a remote/],
  ["project", /not a remote/],
  ["git://git.example.com/project", /not a remote/],
  ["http://git.example.com/team/project", /without TLS/],
  ["https://git.example.com/team/project", /unknown kind/],
  ["https://constructor/team/project", /unknown kind/],
])("refuses %s", (to, why) => {
  expect(() => shipTarget({ to }, source)).toThrow(why);
});

test("refuses invalid branches, a forge for a local path, and guessing", () => {
  expect(() => shipTarget({ into: "a..b" }, source)).toThrow(/not a valid branch name/);
  expect(() => shipTarget({ to: "/srv/project.git", forge: "github" }, source)).toThrow(/no forge/);
  expect(() => shipTarget({}, { kind: "folder", path: "/srv/ada/project" })).toThrow(/no remote to ship to/);
});
