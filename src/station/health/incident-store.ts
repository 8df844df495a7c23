import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { Incident, type IncidentView } from "../../contract/health/health.ts";
import { IncidentId } from "../../contract/health/health-event.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import { isIdPrefix, oneOf } from "../names/one-of.ts";

/** The incidents of restarts. Each is a file in the state folder, so it is available without a station. */
export interface IncidentStore {
  /** Removes the oldest incidents above the limit. */
  keep(incident: Incident): Promise<void>;
  /** Does nothing if the incident was removed. */
  finish(id: IncidentId, end: { outcome: string }): Promise<void>;
  /** Sorted newest first. */
  list(): Promise<IncidentView[]>;
  /** Throws `not_found`, and `invalid` for an ambiguous prefix. */
  get(word: string): Promise<Incident>;
}

const INCIDENTS_MAX = 100;
export const INCIDENT_BYTES_MAX = 1024 * 1024;
const WORDS = { what: "incident", listedBy: "caisson incident ls" };

export function createIncidentStore({ stateDir }: { stateDir: string }): IncidentStore {
  const folder = join(stateDir, "incidents");
  const pathOf = (id: IncidentId) => join(folder, `${id}.json`);
  const read = async (id: IncidentId): Promise<Incident | null> => {
    const found = await ifErrno(readRegularFile(pathOf(id), { bytesMax: 2 * INCIDENT_BYTES_MAX }), ABSENT, null);
    if (found === null || typeof found === "string") return null;
    const parsed = Incident.safeParse(jsonOrNull(found.bytes.toString("utf8")));
    return parsed.success ? parsed.data : null;
  };
  const write = async (incident: Incident): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const fresh = join(folder, `.new-${randomLetters(8)}`);
    try {
      await writeFile(fresh, `${JSON.stringify(incident)}\n`, { mode: 0o600, flag: "wx", flush: true });
      await rename(fresh, pathOf(incident.id));
    } catch (error) {
      await rm(fresh, { force: true });
      throw error;
    }
  };
  const every = async (): Promise<Incident[]> => {
    const names = await ifErrno(readdir(folder), ABSENT, []);
    const ids = names.map((name) => name.replace(/\.json$/, "")).filter((id) => IncidentId.safeParse(id).success);
    const found = (await Promise.all(ids.map(read))).filter((incident) => incident !== null);
    return found.sort((left, right) => right.at.localeCompare(left.at));
  };
  return {
    async keep(incident) {
      await write(incident);
      for (const { id } of (await every()).slice(INCIDENTS_MAX)) await rm(pathOf(id), { force: true });
    },
    async finish(id, { outcome }) {
      const found = await read(id);
      if (found !== null) await write({ ...found, outcome });
    },
    list: async () => (await every()).map(viewOf),
    async get(word) {
      if (!isIdPrefix("inc", word)) {
        throw new CaissonError("invalid", `${JSON.stringify(word)} is not an incident id`, {
          hint: "An id looks like inc_k3v7q2m5x4ab; `caisson incident ls` lists them.",
        });
      }
      const all = (await every()).filter(({ id }) => id.startsWith(word));
      const id = oneOf(word, all, WORDS);
      return all.find((incident) => incident.id === id) as Incident;
    },
  };
}

function viewOf({ id, at, subject, run, owner, condition, why, outcome }: Incident): IncidentView {
  return { id, at, subject, run, owner, condition, why, outcome };
}
