import type { NotTried } from "../attack/claim.ts";
import { ask, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

interface SeenPreview {
  /** Without its token. */
  bare: number;
  /** With the token of the API, which is not the preview's. */
  withApiToken: number;
  /** Closed by another owner. */
  closedByOther: number;
  isListedToOther: boolean;
}

/** What a preview shows to those who do not have its address. */
export const previewClaims: StationClaim[] = [
  defineStationClaim<SeenPreview>({
    id: "P01",
    title: "A preview is only for those who have its token",
    group: "previews",
    tried: "Opened a preview of a sandbox's port, asked for it without its token and with another, and looked for it as another owner.",
    observe: observePreview,
    judge: ({ bare, withApiToken, closedByOther, isListedToOther }) => [
      ...(bare === 401 || bare === 403 || bare === 404 ? [] : [`without its token it was answered with ${bare}`]),
      ...(withApiToken === 401 || withApiToken === 403 || withApiToken === 404 ? [] : [`with a token of the API: ${withApiToken}`]),
      ...(closedByOther === 404 ? [] : [`another owner who closed it was answered with ${closedByOther}`]),
      ...(isListedToOther ? ["it is listed to another owner"] : []),
    ],
  }),
];

async function observePreview(context: StationContext): Promise<SeenPreview | NotTried> {
  const { ada, bob } = context;
  const made = await ask(context, "/v1/sandboxes", { token: ada, body: { spec: {} }, timeoutMs: 60_000 });
  const sandbox = json(made.text).id;
  if (typeof sandbox !== "string") return { notTried: "unverifiable", reason: `no sandbox could be made here (${made.status})` };
  try {
    const opened = await ask(context, `/v1/sandboxes/${sandbox}/previews`, { token: ada, body: { port: 8080 } });
    const { id, plainUrl } = json(opened.text);
    if (typeof plainUrl !== "string") return { notTried: "unverifiable", reason: `no preview could be opened (${opened.status})` };
    const url = plainUrl.replace(/\/$/, "");
    return {
      bare: (await ask({ url }, "/")).status,
      withApiToken: (await ask({ url }, "/", { token: ada })).status,
      closedByOther: (await ask(context, `/v1/previews/${String(id)}`, { method: "DELETE", token: bob })).status,
      isListedToOther: (await ask(context, "/v1/previews", { token: bob })).text.includes(sandbox),
    };
  } finally {
    await ask(context, `/v1/sandboxes/${sandbox}`, { method: "DELETE", token: ada, timeoutMs: 60_000 });
  }
}
