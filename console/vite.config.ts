import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Files that a strict policy of the page's lets through: no inline script, nothing of another origin. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: process.env.CONSOLE_OUT ?? join(import.meta.dirname, "..", "build", "console"),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: "es2023",
    rolldownOptions: {
      output: {
        // What pages share comes in one piece: dozens of small files take longer to ask for than to send.
        codeSplitting: {
          // But for what only the pages of work share, which the first page does not wait for.
          groups: [
            {
              name: "shared",
              test: /console\/src\/(parts|station)\/(?!ask|event-list|facts|followed|scroll|value)|node_modules\/(lucide-react|wouter)\//,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
});
