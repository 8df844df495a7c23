import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { wordsOf } from "../../../parts/problem.tsx";
import { openShell, type Shell, type ShellState } from "./shell.ts";
import { terminalColors } from "./terminal-colors.ts";
import styles from "./terminals.module.css";

const SCROLLBACK_LINES = 5_000;
const FONT_PX = 13;
const LINK_SHOWN_MAX = 300;

/**
 * A screen for one shell. The shell's output cannot change the title or the clipboard, and links ask before they open.
 */
export default function TerminalView(props: { sandbox: string; shell: string; isNew: boolean; isShown: boolean; onEnded(): void }) {
  const { sandbox, shell: ref, isShown, onEnded } = props;
  // Read once: afterwards the shell exists, whatever the list says.
  const [isNew] = useState(props.isNew);
  const streams = useStation().streams;
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<{ terminal: Terminal; fit(): void } | null>(null);
  const [state, setState] = useState<ShellState>({ kind: "opening" });
  /** How often the shell was taken back from another page. */
  const [taking, setTaking] = useState(0);
  const isFontThere = useMonoFont();
  useEffect(() => {
    if (place.current === null || !isFontThere) return;
    const terminal = createTerminal(place.current);
    const addon = new FitAddon();
    terminal.loadAddon(addon);
    let shell: Shell | undefined;
    const fill = () => {
      if (place.current === null || place.current.offsetWidth === 0) return;
      addon.fit();
      shell ??= connect();
    };
    const connect = () => connectShell(terminal, { streams, sandbox, ref, isNew: isNew && taking === 0, onState: setState });
    screen.current = { terminal, fit: fill };
    const sizes = new ResizeObserver(fill);
    sizes.observe(place.current);
    return () => {
      sizes.disconnect();
      screen.current = null;
      shell?.leave();
      terminal.dispose();
    };
  }, [streams, sandbox, ref, isNew, taking, isFontThere]);
  useEffect(() => {
    if (!isShown || !isFontThere) return;
    screen.current?.fit();
    screen.current?.terminal.focus();
  }, [isShown, isFontThere]);
  return (
    <>
      <div ref={place} className={styles.screen} data-shell={ref} />
      <Note state={state} onTake={() => setTaking(taking + 1)} onClose={onEnded} />
    </>
  );
}

/** A terminal measures a character once, when it is created. By then its font must have loaded or failed to load. */
function useMonoFont(): boolean {
  const [isReady, setReady] = useState(() => document.fonts.check(monoFont()));
  useEffect(() => {
    if (isReady) return;
    const markReady = () => setReady(true);
    document.fonts.load(monoFont()).then(markReady, markReady);
  }, [isReady]);
  return isReady;
}

function monoFont(): string {
  return `${FONT_PX}px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
}

function createTerminal(place: HTMLElement): Terminal {
  const terminal = new Terminal({
    fontFamily: getComputedStyle(place).getPropertyValue("--mono"),
    fontSize: FONT_PX,
    lineHeight: 1.2,
    scrollback: SCROLLBACK_LINES,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    theme: terminalColors(place),
    screenReaderMode: true,
    linkHandler: {
      allowNonHttpProtocols: false,
      activate(_event, link) {
        if (confirm(`The sandbox wants to open this page:\n\n${link.slice(0, LINK_SHOWN_MAX)}`))
          open(link, "_blank", "noopener,noreferrer");
      },
    },
  });
  terminal.open(place);
  // Tab goes to the shell. With Ctrl or Shift it moves the focus.
  terminal.attachCustomKeyEventHandler((event) => !(event.key === "Tab" && (event.ctrlKey || event.shiftKey)));
  return terminal;
}

function connectShell(
  terminal: Terminal,
  {
    streams,
    ...options
  }: Pick<Parameters<typeof openShell>[1], "sandbox" | "ref" | "isNew" | "onState"> & {
    streams: Parameters<typeof openShell>[0];
  },
): Shell {
  /** Pieces of past output that are being drawn. Terminal queries in them were answered before. */
  let drawing = 0;
  const shell = openShell(streams, {
    ...options,
    size: { cols: terminal.cols, rows: terminal.rows },
    onOutput(data, { isPast }) {
      if (!isPast) return terminal.write(data);
      drawing += 1;
      terminal.write(data, () => {
        drawing -= 1;
      });
    },
  });
  const encoder = new TextEncoder();
  const isAnswer = (text: string) => drawing > 0 && text.startsWith("\u001b");
  terminal.onData((text) => {
    if (!isAnswer(text)) shell.write(encoder.encode(text));
  });
  terminal.onBinary((text) => {
    if (!isAnswer(text)) shell.write(Uint8Array.from(text, (character) => character.charCodeAt(0)));
  });
  // Picks the size, because the station rejects the event's other fields.
  terminal.onResize(({ cols, rows }) => shell.resize({ cols, rows }));
  return shell;
}

function Note({ state, onTake, onClose }: { state: ShellState; onTake(): void; onClose(): void }) {
  const note = noteOf(state);
  if (note === null) return null;
  return (
    <div className={styles.note} role="status">
      {note}
      {state.kind === "taken" && <Button onClick={onTake}>Show it here</Button>}
      {(state.kind === "ended" || state.kind === "failed") && <Button onClick={onClose}>Close</Button>}
    </div>
  );
}

function noteOf(state: ShellState): string | null {
  switch (state.kind) {
    case "opening":
    case "open":
      return null;
    case "away":
      return "Connection lost. Reconnecting…";
    case "taken":
      return "This shell is open in another window.";
    case "ended":
      return state.ended.kind === "exited" ? `The shell exited with code ${state.ended.exitCode}.` : "The shell has ended.";
    case "failed":
      return wordsOf(state.error).message;
  }
}
