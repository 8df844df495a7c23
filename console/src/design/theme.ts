export type Theme = "system" | "light" | "dark";

const KEY = "caisson.theme";

export function chosenTheme(): Theme {
  const storedTheme = localStorage.getItem(KEY);
  return storedTheme === "light" || storedTheme === "dark" ? storedTheme : "system";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

export function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
