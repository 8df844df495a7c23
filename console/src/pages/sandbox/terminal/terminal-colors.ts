import type { ITheme } from "@xterm/xterm";
import { tokenColor } from "../../../design/token-color.ts";

/** Returns the colors for the element's color scheme. */
export function terminalColors(place: HTMLElement): ITheme {
  const color = (token: string) => tokenColor(place, token);
  return {
    foreground: color("--text"),
    background: color("--sunken"),
    cursor: color("--focus"),
    cursorAccent: color("--sunken"),
    selectionBackground: color("--chosen-text"),
    black: color("--terminal-black"),
    red: color("--terminal-red"),
    green: color("--terminal-green"),
    yellow: color("--terminal-yellow"),
    blue: color("--terminal-blue"),
    magenta: color("--terminal-magenta"),
    cyan: color("--terminal-cyan"),
    white: color("--terminal-white"),
    brightBlack: color("--terminal-bright-black"),
    brightRed: color("--terminal-bright-red"),
    brightGreen: color("--terminal-bright-green"),
    brightYellow: color("--terminal-bright-yellow"),
    brightBlue: color("--terminal-bright-blue"),
    brightMagenta: color("--terminal-bright-magenta"),
    brightCyan: color("--terminal-bright-cyan"),
    brightWhite: color("--terminal-bright-white"),
  };
}
