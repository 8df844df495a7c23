import type { ForwardPort, ForwardView, OpenPreview, PreviewView } from "../../contract/network/network-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { createForward } from "../../network/preview/forward.ts";
import { createPreview } from "../../network/preview/preview.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { OpenedPort } from "../../verbs/networks.ts";

/** Takes over the handle, and releases it together with the preview, or at once if the preview cannot be opened. */
export async function openPreview(sandbox: HeldSandbox, request: OpenPreview): Promise<OpenedPort<PreviewView>> {
  const { port, listenPort = 0 } = request;
  return openPort(sandbox, async () => {
    const preview = await createPreview({
      connect: (inside) => sandbox.connect(inside),
      listeners: () => sandbox.listeners(),
      port,
      listenPort,
    });
    const { url, plainUrl, token } = preview;
    const view = { sandbox: sandbox.id, port, url, plainUrl, token, listenPort: preview.listenPort };
    return { view, close: () => preview.revoke() };
  });
}

export async function openForward(
  sandbox: HeldSandbox,
  request: ForwardPort & { onRefused?: (error: unknown) => void },
): Promise<OpenedPort<ForwardView>> {
  const { port, listenPort = 0, listenHost, onRefused } = request;
  return openPort(sandbox, async () => {
    const forward = await createForward({
      connect: (inside) => sandbox.connect(inside),
      port,
      listenPort,
      ...defined({ listenHost, onRefused }),
    });
    const view = { sandbox: sandbox.id, port, listenHost: forward.listenHost, listenPort: forward.listenPort };
    return { view, close: () => forward.close() };
  });
}

async function openPort<View>(
  sandbox: HeldSandbox,
  open: () => Promise<{ view: View; close(): Promise<void> }>,
): Promise<OpenedPort<View>> {
  const port = await open().catch(async (error: unknown) => {
    await sandbox.release();
    throw error;
  });
  const close = async () => {
    await port.close();
    await sandbox.release();
  };
  return { view: port.view, closed: sandbox.closed, close, [Symbol.asyncDispose]: close };
}
