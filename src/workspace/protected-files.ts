import { matchesStars } from "../lib/wildcards.ts";

/**
 * Files that a tool outside the sandbox acts on. A pattern is a path or the end of one; `*` matches any part of a name,
 * and a trailing `/` everything in a folder.
 */
export interface ProtectedFiles {
  /** The tool, as in "… acts on it". */
  tool: string;
  patterns: readonly string[];
}

/**
 * Files that make a tool run something, or load something that runs, without asking again: when a folder is entered,
 * opened, fetched, built or pushed. An agent's change to one is shown, but applied or committed only on request. Files
 * that only a person runs (a Makefile, a script, a test) are not in this list.
 */
export const heldBack: readonly ProtectedFiles[] = [
  {
    tool: "Caisson itself",
    patterns: names(`
      .caisson/ agents/*.prompt *.prompt .caisson.* caisson.toml caisson.yaml caisson.yml caisson.json
    `),
  },
  {
    tool: "git",
    patterns: names(`
      .gitmodules .gitattributes .gitconfig .lfsconfig .githooks/ .gitexclude
    `),
  },
  {
    tool: "another version control system",
    patterns: names(`
      .hg/ .hgsub .hgrc .svn/ .bzr/ .jj/ .sl/ .fossil-settings/ _darcs/ .pijul/
    `),
  },
  {
    tool: "a tool that runs at a commit or push",
    patterns: names(`
      .husky/ .huskyrc* .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook*.y*ml lefthook*.toml lefthook*.json
      .lefthook*.y*ml .lefthook*.toml .lefthook*.json .lefthook/ .overcommit.yml .lintstagedrc* lint-staged.config.*
      .simple-git-hooks.* simple-git-hooks.* .captainhook.json captainhook.json grumphp.yml .commitlintrc*
      commitlint.config.*
    `),
  },
  {
    tool: "an editor",
    patterns: names(`
      .vscode/ .vscode-server/ *.code-workspace .idea/ *.iml .fleet/ .zed/ .helix/ .nova/ .vs/ .settings/ .nvim/ .nvim
      .nvimrc .nvim.lua .exrc .vimrc .gvimrc .vim/ .lvimrc .local.vimrc .vimspector.json .dir-locals.el .dir-locals-2.el
      .projectile .emacs .emacs.d/ .kakrc *.sublime-project *.sublime-workspace .neoconf.json .lazy.lua .kateproject
      .kateconfig .ycm_extra_conf.py .clangd coc-settings.json
    `),
  },
  {
    tool: "a development container",
    patterns: names(`
      .devcontainer/ .devcontainer.json devcontainer.json .gitpod.yml .gitpod.Dockerfile devfile.yaml .devfile.yaml
      .daytona/ .replit .stackblitzrc .codesandbox/
    `),
  },
  {
    tool: "a forge's automation",
    patterns: names(`
      .github/workflows/ .github/actions/ .github/dependabot.y*ml .github/CODEOWNERS CODEOWNERS .gitlab-ci.y*ml .gitlab/
      .circleci/ .forgejo/ .gitea/ .woodpecker.y*ml .woodpecker/ .travis.y*ml .drone.y*ml .drone.star .drone.jsonnet
      .buildkite/ Jenkinsfile* *.jenkinsfile .jenkins/ azure-pipelines*.y*ml .azure-pipelines/ .azuredevops/
      bitbucket-pipelines.y*ml .build.yml .builds/ appveyor.y*ml .appveyor.y*ml .cirrus.y*ml .cirrus.star .semaphore/
      wercker.y*ml codemagic.yaml buildspec.y*ml cloudbuild.y*ml .teamcity/ .tekton/ .pipelines/ .codeberg/ netlify.toml
      vercel.json .cloudbees/ renovate.json* .renovaterc*
    `),
  },
  {
    tool: "a shell, or a tool that sets one up when a folder is entered",
    patterns: names(`
      .envrc .direnv/ direnv.toml .env .env.local .env.*.local .in .out .autoenv.zsh .autoenv_leave.zsh .autoenv .bashrc
      .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
      .cshrc .tcshrc .inputrc config.fish .config/ .tmux.conf .screenrc .ondir .smartcd/ .psqlrc .sqliterc .my.cnf .wgetrc
      .curlrc .netrc .ssh/ .gnupg/ .terraformrc .local/
    `),
  },
  {
    tool: "a tool that chooses other tools",
    patterns: names(`
      .tool-versions .mise.toml mise.toml .mise.*.toml mise.*.toml .mise/ mise/config*.toml .rtx.toml .asdfrc .nvmrc
      .node-version .python-version .ruby-version .java-version .sdkmanrc .go-version rust-toolchain rust-toolchain.toml
      .proto/ .prototools .volta/ .devbox/ devbox.json flox.toml .flox/ .bun-version .swift-version .terraform-version
    `),
  },
  {
    tool: "a package manager or build tool",
    patterns: names(`
      .npmrc .yarnrc .yarnrc.yml .yarn/ .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs .pnpmfile.mjs bunfig.toml pip.conf pip.ini
      .pip/ .pypirc .condarc uv.toml poetry.toml .pdm.toml .cargo/ .bazelrc *.bazelrc .bazelversion .bazeliskrc
      tools/bazel .buckconfig .buckconfig.local .pants.rc .mvn/ mvnw mvnw.cmd gradlew gradlew.bat gradle/wrapper/
      init.gradle init.gradle.kts .gradle/ gradle.properties .sbtopts .jvmopts .bundle/ .gemrc .luarocks/ .ccache/ .nuget/
      nuget.config Directory.Build.props Directory.Build.targets Directory.Build.rsp .config/dotnet-tools.json .terraform/
    `),
  },
  {
    tool: "an interpreter or debugger as it starts",
    patterns: names(`
      .Rprofile .Renviron .RData .irbrc .pryrc .iex.exs .ghci .haskeline .gdbinit .gdb/ .lldbinit .lldbinit-* .radare2rc
      .pythonrc .pythonrc.py .pdbrc .pdbrc.py sitecustomize.py usercustomize.py site-packages/*.pth .ipython/ .jupyter/
      .node_repl_history .noderc .perldb .phpdbginit .user.ini .htaccess .octaverc .ocamlinit .sbclrc .guile .clojure/
      .lein/ .juliarc.jl .erlang .inputrc .valgrindrc .perltidyrc .latexmkrc latexmkrc
    `),
  },
  {
    tool: "an agent outside the sandbox",
    patterns: names(`
      .mcp.json mcp.json .claude/ .claude.json .cursor/ .cursorrules .cursorignore .windsurf/ .windsurfrules .codeium/
      .codex/ .gemini/ .qwen/ .opencode/ opencode.json* .aider* .continue/ .continuerc* .cline*/ .clinerules* .roo*/
      .roomodes .roorules* .kilocode*/ .kiro/ .amazonq/ .augment*/ .goose/ .goosehints .crush.json crush.json .crush/
      .trae/ .junie/ .openhands/ .agents/ .agent/ .github/copilot* .github/instructions/ .github/prompts/ .github/agents/
      .github/chatmodes/ .vibe/ .tabnine* .factory/ .warp/ .zencoder/
    `),
  },
];

/**
 * Text that agents outside read but no tool runs. It reads like ordinary documentation, and tasks often request changes
 * to it, so we apply them. But we notify the user, because the next agent takes the text for the user's instructions.
 */
export const noticed: readonly ProtectedFiles[] = [
  {
    tool: "agents outside the sandbox",
    patterns: names(`
      AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md CRUSH.md WARP.md CONVENTIONS.md
      SKILL.md llms.txt
    `),
  },
];

/** Returns why a change to a path is applied or committed only on request, or null. */
export function whyHeldBack(path: string): string | null {
  const tool = toolFor(path, held);
  return tool === null ? null : `${tool} acts on it`;
}

/** Returns why a change to a path deserves a second look, or null. */
export function whyNoticed(path: string): string | null {
  const tool = toolFor(path, noticeRules);
  return tool === null ? null : `${tool} read it as your own instructions`;
}

function names(text: string): string[] {
  return text.split(/\s+/).filter((name) => name !== "");
}

type Compiled = readonly { tool: string; matches: (names: readonly string[]) => boolean }[];
const held = compile(heldBack);
const noticeRules = compile(noticed);

/** Ignores case, because some file systems do. */
function toolFor(path: string, compiled: Compiled): string | null {
  const names = path.toLowerCase().split("/");
  return compiled.find(({ matches }) => matches(names))?.tool ?? null;
}

/**
 * Compiles the patterns. A folder pattern also matches the folder's own name, since a change may turn the folder into a
 * link.
 */
function compile(table: readonly ProtectedFiles[]): Compiled {
  return table.map(({ tool, patterns }) => {
    const files = new Set<string>();
    const folders = new Set<string>();
    const others: { segments: string[]; isFolder: boolean }[] = [];
    for (const pattern of patterns) {
      const isFolder = pattern.endsWith("/");
      const text = (isFolder ? pattern.slice(0, -1) : pattern).toLowerCase();
      if (text.includes("*") || text.includes("/")) others.push({ segments: text.split("/"), isFolder });
      else (isFolder ? folders : files).add(text);
    }
    const matches = (names: readonly string[]) =>
      files.has(names.at(-1) ?? "") || names.some((name) => folders.has(name)) || others.some((other) => isNamed(names, other));
    return { tool, matches };
  });
}

function isNamed(names: readonly string[], { segments, isFolder }: { segments: readonly string[]; isFolder: boolean }): boolean {
  const last = names.length - segments.length;
  for (let from = isFolder ? 0 : Math.max(0, last); from <= last; from += 1) {
    if (segments.every((segment, index) => matchesStars(segment, names[from + index] ?? ""))) return true;
  }
  return false;
}
