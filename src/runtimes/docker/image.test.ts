import { expect, test } from "vitest";
import type { Engine } from "./engine.ts";
import { findImage } from "./image.ts";

const id = `sha256:${"ab".repeat(32)}`;

/** An engine that finds its image by any reference, as real ones do by an id or an id prefix. */
const engineWith = (image: { RepoTags: string[]; Labels?: Record<string, string> }) =>
  ({
    socketPath: "/run/engine.sock",
    docker: {
      getImage: () => ({ inspect: async () => ({ Id: id, Os: "linux", RepoTags: image.RepoTags, Config: { Labels: image.Labels } }) }),
    },
  }) as unknown as Engine;

const find = (engine: Engine, reference: string, owner?: string) =>
  findImage({ engine, template: { kind: "image", reference }, defaultImage: null, stateLabel: "x", owner });

test("another owner finds an image by its name, but not by its id", async () => {
  const tagged = engineWith({ RepoTags: ["docker.io/library/debian:12", "team/app:latest"] });
  for (const name of ["debian:12", "team/app", "team/app:latest", "docker.io/library/debian:12"])
    expect(await find(tagged, name, "ada")).toMatchObject({ id });
  for (const word of [id, "abab", "ababababab", "app@sha256:abab", "bian:12"])
    await expect(find(tagged, word, "ada"), word).rejects.toMatchObject({ code: expect.stringMatching(/not_found|invalid/) });
  expect(await find(tagged, id)).toMatchObject({ id });
});

test("another owner cannot use a snapshot as an image", async () => {
  const snapshot = engineWith({ RepoTags: ["caisson/snap:latest"], Labels: { "caisson.snapshot": "snap_x" } });
  await expect(find(snapshot, "caisson/snap", "ada")).rejects.toMatchObject({ code: "not_found" });
  expect(await find(snapshot, "caisson/snap")).toMatchObject({ id });
});
