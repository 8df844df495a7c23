import "./schemas-without-eval.ts";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./design/fonts.css";
import "./design/tokens.css";
import "./design/base.css";
import { App } from "./app.tsx";
import { applyTheme } from "./design/theme.ts";
import { guardHistory } from "./parts/unsaved.ts";

applyTheme();
guardHistory();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
