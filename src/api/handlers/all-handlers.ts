import type { Handlers } from "../call.ts";
import { agentHandlers } from "./agents.ts";
import { execHandlers } from "./exec.ts";
import { fileHandlers } from "./files.ts";
import { guardianHandlers } from "./guardian.ts";
import { healthHandlers } from "./health.ts";
import { inboxHandlers } from "./inbox.ts";
import { insideHandlers } from "./inside.ts";
import { machineHandlers } from "./machine.ts";
import { mergeHandlers } from "./merges.ts";
import { networkHandlers } from "./networks.ts";
import { processHandlers } from "./processes.ts";
import { runHandlers } from "./runs.ts";
import { sandboxHandlers } from "./sandboxes.ts";
import { secretHandlers } from "./secrets.ts";
import { sessionHandlers } from "./sessions.ts";
import { shipHandlers } from "./ships.ts";
import { specHandlers } from "./specs.ts";
import { type ServerControl, stationHandlers } from "./station.ts";
import { uploadHandlers } from "./uploads.ts";
import { webhookHandlers } from "./webhooks.ts";
import { workflowHandlers } from "./workflows.ts";

/** What answers each route, by its name. */
export function allHandlers(options: { server: ServerControl }): Handlers {
  return {
    ...stationHandlers(options.server),
    ...secretHandlers,
    ...machineHandlers,
    ...agentHandlers,
    ...sandboxHandlers,
    ...execHandlers,
    ...processHandlers(),
    ...fileHandlers,
    ...networkHandlers,
    ...runHandlers,
    ...sessionHandlers,
    ...specHandlers,
    ...healthHandlers,
    ...guardianHandlers,
    ...uploadHandlers,
    ...insideHandlers,
    ...inboxHandlers,
    ...shipHandlers,
    ...webhookHandlers,
    ...mergeHandlers,
    ...workflowHandlers,
  };
}
