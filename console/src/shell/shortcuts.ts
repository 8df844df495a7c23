import { isPageKey } from "../parts/page-keys.ts";

/** A key that does something. Pages add their own while they are shown. */
export interface Shortcut {
  /** The keys to press; `g r` means one after the other. */
  keys: string;
  does: string;
  /** Where it works, for the list of shortcuts. */
  where: string;
}

export const shortcuts: readonly (Shortcut & { href?: string })[] = [
  { keys: "g r", does: "Runs", where: "everywhere", href: "/runs" },
  { keys: "g w", does: "Work", where: "everywhere", href: "/work" },
  { keys: "g s", does: "Sandboxes", where: "everywhere", href: "/sandboxes" },
  { keys: "g i", does: "Inbox", where: "everywhere", href: "/inbox" },
  { keys: "g t", does: "Settings", where: "everywhere", href: "/settings" },
  { keys: "c", does: "New run", where: "everywhere", href: "/start" },
  { keys: "Ctrl k", does: "Command palette", where: "everywhere" },
  { keys: "?", does: "Keyboard shortcuts", where: "everywhere", href: "/settings/shortcuts" },
  { keys: "/", does: "Search", where: "lists" },
  { keys: "j", does: "Next row", where: "lists" },
  { keys: "k", does: "Previous row", where: "lists" },
  { keys: "x", does: "Select the row", where: "lists" },
  { keys: "Enter", does: "Open the row", where: "lists" },
  { keys: "n", does: "New sandbox", where: "the sandbox list" },
];

const TOGETHER_MS = 1_000;

/** Calls `go` with the address that belongs to the pressed keys. Ignores keys typed into a field. */
export function listenForPlaces(go: (href: string) => void): () => void {
  let first = "";
  let at = 0;
  const onKey = (event: KeyboardEvent) => {
    if (!isPageKey(event)) return;
    const pressed = first !== "" && event.timeStamp - at < TOGETHER_MS ? `${first} ${event.key}` : event.key;
    const found = shortcuts.find(({ keys }) => keys === pressed);
    first = event.key;
    at = event.timeStamp;
    if (found?.href === undefined) return;
    event.preventDefault();
    first = "";
    go(found.href);
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
