import type { ITheme } from "@xterm/xterm";

const light = {
  foreground: "#1c1c1a",
  background: "#f3f3f1",
  cursor: "#3b5bdb",
  cursorAccent: "#f3f3f1",
  selectionBackground: "#cfd9ff",
  black: "#1c1c1a",
  red: "#b3261e",
  green: "#1d7a46",
  yellow: "#8f5a00",
  blue: "#3450c4",
  magenta: "#8e3ab0",
  cyan: "#10707f",
  white: "#71706b",
  brightBlack: "#5c5b57",
  brightRed: "#c73a31",
  brightGreen: "#238b52",
  brightYellow: "#a06700",
  brightBlue: "#4763d8",
  brightMagenta: "#a04fc2",
  brightCyan: "#158193",
  brightWhite: "#3b3a37",
} satisfies ITheme;

const dark = {
  foreground: "#ececea",
  background: "#0c0d0e",
  cursor: "#8ea3ff",
  cursorAccent: "#0c0d0e",
  selectionBackground: "#33427c",
  black: "#26282c",
  red: "#ff8f85",
  green: "#5fcb91",
  yellow: "#e8b45a",
  blue: "#8ea3ff",
  magenta: "#d59cf0",
  cyan: "#6fcbd8",
  white: "#d3d2ce",
  brightBlack: "#8b8d93",
  brightRed: "#ffb0a8",
  brightGreen: "#86e0ae",
  brightYellow: "#f3cd87",
  brightBlue: "#b3c1ff",
  brightMagenta: "#e5bff7",
  brightCyan: "#9adfe9",
  brightWhite: "#ffffff",
} satisfies ITheme;

/** The colours of the scheme that this element has, whoever chose it. */
export function terminalColors(place: HTMLElement): ITheme {
  const scheme = getComputedStyle(place).colorScheme;
  const isDark = scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  return isDark ? dark : light;
}
