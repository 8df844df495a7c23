import { agents } from "./agents.ts";
import { audit } from "./audit.ts";
import { bests } from "./bests.ts";
import { guardian } from "./guardian.ts";
import { health } from "./health.ts";
import { images } from "./images.ts";
import { inbox } from "./inbox.ts";
import { inside } from "./inside.ts";
import { machine } from "./machine.ts";
import { merges } from "./merges.ts";
import { networks } from "./networks.ts";
import { runs } from "./runs.ts";
import { sandboxes } from "./sandboxes.ts";
import { secrets } from "./secrets.ts";
import { sessions } from "./sessions.ts";
import { ships } from "./ships.ts";
import { specs } from "./specs.ts";
import { templates } from "./templates.ts";
import { tokens } from "./tokens.ts";
import { uploads } from "./uploads.ts";
import { webhooks } from "./webhooks.ts";
import { workflows } from "./workflows.ts";

/** Every verb of the station, by group. */
export const declaredVerbs = {
  runs,
  sessions,
  agents,
  sandboxes,
  images,
  templates,
  networks,
  machine,
  tokens,
  audit,
  health,
  guardian,
  uploads,
  secrets,
  inside,
  webhooks,
  specs,
  ships,
  merges,
  bests,
  workflows,
  inbox,
};
