/* SPDX-License-Identifier: Apache-2.0 */

/* Which files tools of this machine run, or read commands from, without being asked: by entering a
 * folder, opening it in an editor, or calling git, a shell or a package manager in it. Whoever can
 * change one of these has a command on this machine, outside every wall.
 *
 * What somebody has to name to run it (a Makefile, a script, a test) is not among them. */

#include "flow/equip/workspace.h"

#include <string.h>

#define GIT "git runs its hooks and what its config names"
#define SHELL "a shell reads it when it starts"
#define EDITOR "an editor takes tasks and programs from it when the folder is opened"
#define AGENT "an agent takes hooks, tools and servers to start from it"
#define PACKAGES "a package manager loads it with every command"

static const struct protected_rule rules[] = {
    {NULL,     ".git",                    GIT                                                      },
    {NULL,     ".githooks",               "a usual place of git hooks (core.hooksPath)"            },
    {NULL,     ".husky",                  "git hooks of husky"                                     },
    {NULL,     ".gitconfig",              GIT                                                      },
    {NULL,     ".gitmodules",             "git fetches and checks out what it names"               },
    {NULL,     ".pre-commit-config.yaml", "its commands run with every commit"                     },
    {NULL,     "lefthook.yml",            "its commands run with every commit"                     },
    {NULL,     ".lefthook.yml",           "its commands run with every commit"                     },
    {NULL,     ".vscode",                 EDITOR                                                   },
    {NULL,     ".idea",                   EDITOR                                                   },
    {NULL,     ".zed",                    EDITOR                                                   },
    {NULL,     ".fleet",                  EDITOR                                                   },
    {NULL,     ".exrc",                   EDITOR                                                   },
    {NULL,     ".vimrc",                  EDITOR                                                   },
    {NULL,     ".nvimrc",                 EDITOR                                                   },
    {NULL,     ".nvim.lua",               EDITOR                                                   },
    {NULL,     ".dir-locals.el",          EDITOR                                                   },
    {NULL,     ".devcontainer",           "an editor builds and runs it when the folder is opened" },
    {NULL,     ".devcontainer.json",      "an editor builds and runs it when the folder is opened" },
    {NULL,     ".mcp.json",               AGENT                                                    },
    {NULL,     ".cursor",                 AGENT                                                    },
    {NULL,     ".claude",                 AGENT                                                    },
    {NULL,     ".codex",                  AGENT                                                    },
    {NULL,     ".gemini",                 AGENT                                                    },
    {NULL,     ".windsurf",               AGENT                                                    },
    {NULL,     ".envrc",                  "direnv runs it when a shell enters the folder"          },
    {NULL,     "mise.toml",               "mise reads it when a shell enters the folder"           },
    {NULL,     ".mise.toml",              "mise reads it when a shell enters the folder"           },
    {NULL,     ".bashrc",                 SHELL                                                    },
    {NULL,     ".bash_profile",           SHELL                                                    },
    {NULL,     ".bash_login",             SHELL                                                    },
    {NULL,     ".bash_logout",            SHELL                                                    },
    {NULL,     ".bash_aliases",           SHELL                                                    },
    {NULL,     ".profile",                SHELL                                                    },
    {NULL,     ".zshrc",                  SHELL                                                    },
    {NULL,     ".zshenv",                 SHELL                                                    },
    {NULL,     ".zprofile",               SHELL                                                    },
    {NULL,     ".zlogin",                 SHELL                                                    },
    {NULL,     ".zlogout",                SHELL                                                    },
    {NULL,     ".inputrc",                SHELL                                                    },
    {NULL,     ".tmux.conf",              "tmux runs its commands when it starts"                  },
    {NULL,     ".ripgreprc",              "ripgrep takes a program to run from it"                 },
    {NULL,     ".gdbinit",                "gdb runs its commands when it starts in the folder"     },
    {NULL,     ".lldbinit",               "lldb runs its commands when it starts in the folder"    },
    {NULL,     ".npmrc",                  PACKAGES                                                 },
    {NULL,     ".yarnrc",                 PACKAGES                                                 },
    {NULL,     ".yarnrc.yml",             PACKAGES                                                 },
    {NULL,     ".pnpmfile.cjs",           PACKAGES                                                 },
    {NULL,     ".pnpmfile.mjs",           PACKAGES                                                 },
    {".yarn",  "releases",                PACKAGES                                                 },
    {".yarn",  "plugins",                 PACKAGES                                                 },
    {NULL,     "bunfig.toml",             PACKAGES                                                 },
    {NULL,     ".mvn",                    PACKAGES                                                 },
    {".cargo", "config",                  "cargo takes programs to run from it, also for an editor"},
    {".cargo", "config.toml",             "cargo takes programs to run from it, also for an editor"},
};

const struct protected_rule *equip_protected_rules(size_t *n)
{
    *n = COUNT(rules);
    return rules;
}

const struct protected_rule *rule_for(const char *holder, const char *name)
{
    for (size_t i = 0; i < COUNT(rules); i++)
        if (strcmp(rules[i].name, name) == 0 &&
            (!rules[i].holder || strcmp(rules[i].holder, holder) == 0))
            return &rules[i];
    return NULL;
}

/* Some of these hold whole checkouts of other work (.claude/worktrees); such a checkout is a
 * workspace like any other. What lies in the rest belongs to the tool. */
static bool covers_all_below(const struct protected_rule *rule)
{
    static const char *const whole[] = {".git",    ".githooks",     ".husky", ".vscode",
                                        ".idea",   ".devcontainer", ".mvn",   "releases",
                                        "plugins", ".zed",          ".fleet"};

    for (size_t i = 0; i < COUNT(whole); i++)
        if (strcmp(rule->name, whole[i]) == 0)
            return true;
    return false;
}

const struct protected_rule *rule_covering(const char *path)
{
    char holder[256] = "";
    char name[256];

    while (*path) {
        size_t n;
        const struct protected_rule *rule;

        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n == 0 || n >= sizeof name)
            return NULL;
        memcpy(name, path, n);
        name[n] = '\0';
        path += n;
        rule = rule_for(holder, name);
        if (rule && (*path == '\0' || covers_all_below(rule)))
            return rule;
        (void)strcpy(holder, name);
    }
    return NULL;
}

/* "hooks/x", "modules/sub/config": of a git folder, what git runs or reads its orders from. */
static bool is_git_part(const char *path)
{
    static const char *const parts[] = {"hooks", "config", "config.worktree", "info", "commondir"};
    bool deeper = strncmp(path, "modules/", 8) == 0 || strncmp(path, "worktrees/", 10) == 0;

    while (*path) {
        size_t n = strcspn(path, "/");

        for (size_t i = 0; i < COUNT(parts); i++)
            if (strlen(parts[i]) == n && memcmp(parts[i], path, n) == 0)
                return true;
        if (!deeper)
            return false;
        path += n + strspn(path + n, "/");
    }
    return false;
}

bool equip_protected_path(const char *path, char type)
{
    char holder[256] = "", name[256];
    bool packages = false;

    while (*path) {
        size_t n = strcspn(path, "/");
        const char *below = path + n + strspn(path + n, "/");

        if (n >= sizeof name)
            return true; /* longer than any name there can be */
        memcpy(name, path, n);
        name[n] = '\0';
        if (strcmp(name, ".git") == 0)
            return *below ? is_git_part(below) : type != 'd';
        if (!packages && rule_for(holder, name))
            return true;
        packages |= strcmp(name, "node_modules") == 0;
        (void)strcpy(holder, name);
        path = below;
    }
    return false;
}
