import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `agents.${string}`>;

export const agentHandlers: Handlers<Name> = {
  "agents.list": async ({ station }) => ({ json: { agents: await station.agents.list() } }),
  async "agents.show"({ station, body }) {
    const { name, ...asked } = body;
    return { json: await station.agents.show(name, defined(asked)) };
  },
  async "agents.validate"({ station, body }) {
    const { path, ...asked } = body;
    return { json: { fault: await station.agents.validate(path, asked) } };
  },
  async "agents.filesAt"({ station, body }) {
    const { path, ...asked } = body;
    return { json: { paths: await station.agents.filesAt(path, asked) } };
  },
  "agents.judge": async ({ station, body }) => ({ json: await station.agents.judge(body.path) }),
  async "agents.trust"({ station, body }) {
    const { path, ...asked } = body;
    await station.agents.trust(path, asked);
    return nothing;
  },
  "agents.trusted": async ({ station }) => ({ json: { files: await station.agents.trusted() } }),
  "agents.revoke": async ({ station, body }) => ({ json: { paths: await station.agents.revoke(body.path) } }),
};
