import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/**
 * The page's policy forbids inline scripts and other origins, so assets are separate files without a preload polyfill.
 */
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
        // One file for everything that pages share: requesting dozens of small files takes longer than sending them.
        codeSplitting: {
          // Excludes modules that only the work pages share, because the first page does not need them.
          groups: [
            {
              name: "shared",
              test: /console\/src\/(parts|data)\/(?!ask|event-list|facts|followed|scroll|value)|node_modules\/(lucide-react|wouter)\//,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
});
