/* A recorder in the place of Oracle's client library: what ODPI-C calls is written to a log, and
 * nothing more. There is no database behind it: it shows what a program sends, not what Oracle would
 * say. The errors that it answers with are those that the test asks for.
 *
 * The connect string is the path of the log. "<log>.script" may hold lines
 *     refuse <bytes in hex> <code>    a row with this RAW fails in batch mode
 *     execute <code>                  an INSERT, UPDATE or DELETE fails
 *     statement <code> <text>         a statement that begins so fails
 *     commit <code>                   COMMIT fails
 *     rollback <code>                 ROLLBACK fails, and the transaction stays open
 *     attach <code>                   no connection is made
 *     missing <bytes in hex> 1        an UPDATE or DELETE by this RAW changes no row
 *     twice <bytes in hex> 1          it changes two
 *     found <bytes in hex> 1          a SELECT by this RAW has a row
 *     rows <n,n;n,n ..> <text>        a SELECT that begins so has these rows of numbers; `-` is none
 *     changed <n> <text>              a statement that begins so changes as many rows
 * A code may have two numbers behind it: how often it is so, and how often it is not before. A row of
 * INSERT is known by its first value, others by their last.
 *
 * Signatures: Oracle Call Interface Programmer's Guide; struct layouts are the recorder's own.
 *
 * The first flush into a table asks the catalog whether the table is protected. That question and its
 * ROLLBACK are not written down, as the tests run in any order. All tables are, unless a script says no.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, WITH_INFO = 1, NO_DATA = 100, FAILED = -1 };
enum { UTF8 = 873, MAX_BINDS = 32, MAX_ROWS = 1000, MAX_LINES = 16 };
enum { MAX_COLUMNS = 8 };
enum { COMMIT = 0x20, BATCH_ERRORS = 0x80, ROW_COUNTS = 0x100000, DROP_SESSION = 1 };
enum { UNKNOWN = 0, SELECT = 1, UPDATE = 2, DELETE = 3, INSERT = 4 };

typedef struct {
    char *value;
    int64_t size;
    uint16_t type;
    int16_t *null;
    uint32_t *length;
} Bind;

typedef struct Handle {
    int code;          /* of an error */
    int offset;        /* of a batch error */
    int asked[MAX_LINES]; /* of a server: how often each line of the script was the case */
    char *log;         /* of a server; of a service and a session its server's */
    int in_transaction;
    int calls;         /* of a server: since the last transaction */
    int asks_catalog;  /* of a server: the open transaction has a question to the catalog and nothing else */
    uint32_t timeout;  /* of a service: ms that a call may take */
    struct Handle *server;
    char *sql;         /* of a statement */
    int kind, bind_count;
    Bind binds[MAX_BINDS];
    int error_count, codes[MAX_ROWS], offsets[MAX_ROWS];
    uint32_t row_count;
    uint64_t changed;
    uint64_t counts[MAX_ROWS];
    int found;         /* of a SELECT: rows that are left */
    uint32_t fetched;
    Bind defines[MAX_COLUMNS];
    uint32_t columns;
    int64_t numbers[MAX_ROWS]; /* of its rows, one row behind the other */
} Handle;

static __thread void *thread_value;
static __thread Handle *last_statement;
static char names[MAX_BINDS][4];

static void say(Handle *server, const char *text) {
    FILE *log = fopen(server->log, "a");
    if (!log) return; /* the test is over, and what it leaves open is closed */
    fprintf(log, "%s\n", text);
    fclose(log);
}

/* Returns the code that the script has for this, or 0. What begins with a code may end with how a
 * statement begins. */
static int scripted(Handle *server, const char *what, const char *sql) {
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s.script", server->log);
    FILE *script = fopen(path, "r");
    if (!script) return 0;
    int found = 0;
    for (int number = 0; !found && number < MAX_LINES && fgets(line, sizeof line, script); number++) {
        int code = 0, times = 0, before = 0, text = 0;
        size_t length = strlen(what);
        if (strncmp(line, what, length) || line[length] != ' ') continue;
        line[strcspn(line, "\n")] = 0;
        sscanf(line + length, "%d %n%d %d", &code, &text, &times, &before);
        if (sql && strncmp(sql, line + length + text, strlen(line + length + text))) continue;
        int asked = server->asked[number]++;
        if (asked >= before && (!times || asked < before + times)) found = code;
    }
    fclose(script);
    return found;
}

/* Returns what the script has before the text that a statement begins with, or NULL. It is not kept. */
static const char *said(Handle *server, const char *what, const char *sql) {
    static __thread char line[1024], words[1024];
    char path[4096];
    snprintf(path, sizeof path, "%s.script", server->log);
    FILE *script = fopen(path, "r");
    const char *found = NULL;
    while (script && !found && fgets(line, sizeof line, script)) {
        size_t length = strlen(what);
        int text = 0;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, what, length) || line[length] != ' ') continue;
        if (sscanf(line + length, " %1000s %n", words, &text) == 1 &&
            !strncmp(sql, line + length + text, strlen(line + length + text))) found = words;
    }
    if (script) fclose(script);
    return found;
}

/* A number of the client library, behind its length: an exponent of 100 and its digits, each plus one. */
static void number(char *to, int64_t value) {
    unsigned char digits[10];
    int count = 0, zeros = 0;
    for (; value > 0; value /= 100) digits[count++] = value % 100;
    while (zeros < count && !digits[zeros]) zeros++;
    to[0] = 1 + count - zeros;
    to[1] = count ? 0xc0 + count : 0x80;
    for (int i = 0; i < count - zeros; i++) to[2 + i] = digits[count - 1 - i] + 1;
}

static int fail(void *error, int code) {
    ((Handle *)error)->code = code;
    return FAILED;
}

void OCIClientVersion(int *a, int *b, int *c, int *d, int *e) { *a = 19; *b = 3; *c = *d = *e = 0; }
void OCIThreadProcessInit(void) {}
int OCIThreadKeyInit(void *h, void *e, void **key, void *f) { *key = &thread_value; return OK; }
int OCIThreadKeyGet(void *h, void *e, void *key, void **value) { *value = thread_value; return OK; }
int OCIThreadKeySet(void *h, void *e, void *key, void *value) { thread_value = value; return OK; }
int OCIThreadKeyDestroy(void *h, void *e, void **key) { return OK; }
int OCINlsNumericInfoGet(void *env, void *e, int32_t *value, uint16_t item) { *value = 4; return OK; }

int OCIEnvNlsCreate(void **env, uint32_t mode, void *c, void *m, void *r, void *f, size_t x, void **u,
                    uint16_t charset, uint16_t ncharset) {
    *env = calloc(1, sizeof(Handle));
    return OK;
}

int OCIHandleAlloc(const void *parent, void **handle, uint32_t type, size_t x, void **u) {
    *handle = calloc(1, sizeof(Handle));
    return OK;
}

/* Handles are few, and what refers to them outlives some. */
int OCIHandleFree(void *handle, uint32_t type) { return OK; }

int OCIAttrSet(void *handle, uint32_t type, void *value, uint32_t size, uint32_t attribute, void *e) {
    if (type == 3 && attribute == 6) ((Handle *)handle)->server = value;          /* SERVER */
    if (type == 3 && attribute == 531) {                                          /* CALL_TIMEOUT */
        char line[40];
        ((Handle *)handle)->timeout = *(uint32_t *)value;
        snprintf(line, sizeof line, "TIMEOUT %u", *(uint32_t *)value);
        say(((Handle *)handle)->server, line);
    }
    if (type == 3 && attribute == 7)                                              /* SESSION */
        ((Handle *)value)->server = ((Handle *)handle)->server;
    return OK;
}

int OCIAttrGet(const void *handle, uint32_t type, void *value, uint32_t *size, uint32_t attribute,
               void *e) {
    Handle *h = (Handle *)handle;
    /* A column of a SELECT: a number without a name. */
    if (type == 7) switch (attribute) {
        case 2: *(uint16_t *)value = 2; return OK;                                /* DATA_TYPE */
        case 4: *(const char **)value = "1"; *size = 1; return OK;                /* NAME */
        case 5: *(int16_t *)value = 0; return OK;                                 /* PRECISION */
        case 6: *(int8_t *)value = 0; return OK;                                  /* SCALE */
        case 7: *(uint8_t *)value = 1; return OK;                                 /* IS_NULL */
        default: return OK;
    }
    if (type == 3) switch (attribute) { /* the first two of a service that a pool made */
        case 6: *(void **)value = h->server; return OK;                           /* SERVER */
        case 7: *(void **)value = h; return OK;                                   /* SESSION */
        case 531: *(uint32_t *)value = h->timeout; return OK;                     /* CALL_TIMEOUT */
    }
    switch (attribute) {
        case 18: *(uint32_t *)value = h->columns; return OK;                      /* PARAM_COUNT */
        case 197: *(uint32_t *)value = h->fetched; return OK;                     /* ROWS_FETCHED */
        case 469: *(uint64_t **)value = h->counts; *size = h->row_count; return OK; /* DML_ROW_COUNT_ARRAY */
        case 31: case 262: *(uint16_t *)value = UTF8; return OK;                  /* CHARSET_ID */
        case 24: *(uint16_t *)value = h->kind; return OK;                         /* STMT_TYPE */
        case 190: *(uint32_t *)value = h->bind_count; return OK;                  /* BIND_COUNT */
        case 73: *(uint32_t *)value = h->error_count; return OK;                  /* NUM_DML_ERRORS */
        case 74: *(int32_t *)value = h->offset; return OK;                        /* DML_ROW_OFFSET */
        case 129: *(uint16_t *)value = 0; return OK;                              /* PARSE_ERROR_OFFSET */
        case 143: *(uint32_t *)value = 1; return OK;                              /* SERVER_STATUS: normal */
        case 457: *(uint64_t *)value = h->changed; return OK;                     /* UB8_ROW_COUNT */
        case 484: *(int32_t *)value = h->server->in_transaction; return OK;       /* TRANSACTION_IN_PROGRESS */
        default: return OK;
    }
}

int OCIServerAttach(void *server, void *e, const char *link, int32_t length, uint32_t mode) {
    ((Handle *)server)->log = strndup(link, length);
    int code = scripted(server, "attach", 0);
    return code ? fail(e, code) : OK;
}
int OCIServerDetach(void *server, void *e, uint32_t mode) { return OK; }
int OCISessionBegin(void *service, void *e, void *session, uint32_t kind, uint32_t mode) { return OK; }
int OCISessionEnd(void *service, void *e, void *session, uint32_t mode) { return OK; }

/* A pool: its name is the path of the log. Sessions are not kept. */
int OCISessionPoolCreate(void *env, void *e, void *pool, const char **name, uint32_t *length,
                         const char *link, uint32_t link_length, uint32_t least, uint32_t most,
                         uint32_t step, const char *user, uint32_t user_length, const char *password,
                         uint32_t password_length, uint32_t mode) {
    *name = strndup(link, link_length);
    *length = link_length;
    return OK;
}
int OCISessionPoolDestroy(void *pool, void *e, uint32_t mode) { return OK; }
int OCISessionGet(void *env, void *error, void **service, void *auth, const char *name, uint32_t length,
                  const char *tag, uint32_t tag_length, const char **found_tag, uint32_t *found_length,
                  int *found, uint32_t mode) {
    Handle *h = *service = calloc(1, sizeof(Handle));
    h->server = calloc(1, sizeof(Handle));
    h->server->log = strndup(name, length);
    say(h->server, "GET");
    return OK;
}
int OCISessionRelease(void *service, void *e, const char *tag, uint32_t length, uint32_t mode) {
    say(((Handle *)service)->server, mode & DROP_SESSION ? "RELEASE AND DROP" : "RELEASE");
    return OK;
}
int OCIContextGetValue(void *h, void *e, const char *key, uint8_t length, void **value) {
    *value = NULL;
    return OK;
}
int OCIContextSetValue(void *h, void *e, uint16_t duration, const char *key, uint8_t length, void *value) {
    return OK;
}
int OCIMemoryAlloc(void *h, void *e, void **memory, uint16_t duration, uint32_t size, uint32_t flags) {
    *memory = calloc(1, size);
    return OK;
}
int OCIMemoryFree(void *h, void *e, void *memory) { return OK; }

int OCIStmtPrepare2(void *service, void **statement, void *e, const char *sql, uint32_t length,
                    const char *key, uint32_t key_length, uint32_t language, uint32_t mode) {
    Handle *h = calloc(1, sizeof(Handle));
    h->server = ((Handle *)service)->server;
    h->sql = strndup(sql, length);
    const char *kinds[] = {[SELECT] = "SELECT", [UPDATE] = "UPDATE", [DELETE] = "DELETE", [INSERT] = "INSERT"};
    for (int kind = SELECT; kind <= INSERT; kind++)
        if (!strncmp(h->sql, kinds[kind], 6)) h->kind = kind;
    int quoted = 0;
    for (const char *c = h->sql; h->kind && *c; c++) {
        if (*c == '\'') quoted = !quoted;
        if (*c == ':' && !quoted) h->bind_count++;
    }
    *statement = h;
    return OK;
}
int OCIStmtRelease(void *statement, void *e, const char *key, uint32_t length, uint32_t mode) {
    return OK;
}

int OCIStmtGetBindInfo(void *statement, void *e, uint32_t size, uint32_t start, int32_t *found,
                       char *bvnp[], uint8_t bvnl[], char *invp[], uint8_t inpl[], uint8_t dupl[],
                       void **binds) {
    int count = ((Handle *)statement)->bind_count;
    for (int i = 0; i < count && i < (int)size; i++) {
        snprintf(names[i], sizeof names[i], "%d", i + 1);
        bvnp[i] = names[i];
        bvnl[i] = strlen(names[i]);
        dupl[i] = 0;
    }
    *found = count;
    return OK;
}

int OCIBindByPos2(void *statement, void **bind, void *e, uint32_t position, void *value, int64_t size,
                  uint16_t type, void *null, uint32_t *length, uint16_t *rcode, uint32_t most,
                  uint32_t *current, uint32_t mode) {
    ((Handle *)statement)->binds[position - 1] = (Bind){value, size, type, null, length};
    *bind = calloc(1, sizeof(Handle));
    return OK;
}

static void hex(char *to, const char *from, int64_t length) {
    for (int64_t i = 0; i < length; i++) sprintf(to + 2 * i, "%02x", (unsigned char)from[i]);
}

int OCIStmtExecute(void *service, void *statement, void *error, uint32_t rows, uint32_t offset,
                   const void *in, void *out, uint32_t mode) {
    Handle *h = statement, *server = h->server;
    char line[8192], asked[600];
    int of_catalog = strstr(h->sql, " all_indexes ") != NULL;
    if (server->asks_catalog) say(server, "NOT ROLLED BACK:");
    server->asks_catalog = of_catalog && !server->calls;
    server->calls++;
    if (!of_catalog) say(server, h->sql);
    last_statement = h;
    h->error_count = h->row_count = 0;
    int code = scripted(server, "statement", h->sql);
    if (code) return fail(error, code);
    if (!h->kind) return OK;
    if (h->kind != SELECT) {
        server->in_transaction = 1;
        code = scripted(server, "execute", 0);
    } else rows = 1;
    h->columns = 1;
    const char *words = said(server, h->kind == SELECT ? "rows" : "changed", h->sql);
    if (!words && of_catalog) words = "0;1;2;3;4;5;6;7"; /* the numbers of the tables */
    if (h->kind != SELECT) h->changed = words ? atoi(words) : 0;
    int scripted_rows = h->kind == SELECT && words;
    if (scripted_rows) {
        int count = 0;
        h->found = *words != '-';
        for (const char *c = words; h->found && *c; c += strspn(c, ",;")) {
            char *end;
            h->numbers[count++] = strtoll(c, &end, 10);
            c = end;
            if (*c == ';') h->found++;
        }
        if (h->found) h->columns = count / h->found;
    }
    for (uint32_t row = 0; row < rows; row++) {
        char *end = line;
        int known_by = h->kind == INSERT ? 0 : h->bind_count - 1;
        /* Behind the key there may be a version, which is a number. */
        if (known_by && h->binds[known_by].type == 6 && h->binds[known_by - 1].type != 6) known_by--;
        end += sprintf(end, " ");
        for (int column = 0; column < h->bind_count; column++) {
            Bind *b = &h->binds[column];
            char *value = b->value + row * b->size;
            char text[512] = "NULL";
            if (!b->null || b->null[row] != -1)
                /* A number begins with its length, and what follows it is no part of it. */
                hex(text, value, b->length ? b->length[row] : b->type == 6 ? *value + 1 : b->size);
            end += sprintf(end, " %u:%s", b->type, text);
            if (column != known_by) continue;
            snprintf(asked, sizeof asked, "refuse %s", text);
            int of_row = scripted(server, asked, 0);
            if (of_row && (mode & BATCH_ERRORS)) {
                h->codes[h->error_count] = of_row;
                h->offsets[h->error_count++] = row;
            }
            if (mode & ROW_COUNTS) {
                snprintf(asked, sizeof asked, "missing %s", text);
                int missing = scripted(server, asked, 0);
                snprintf(asked, sizeof asked, "twice %s", text);
                h->counts[h->row_count++] = missing ? 0 : scripted(server, asked, 0) ? 2 : 1;
            }
            snprintf(asked, sizeof asked, "found %s", text);
            if (h->kind == SELECT && !scripted_rows) h->found = h->numbers[0] = scripted(server, asked, 0);
        }
        if (!of_catalog) say(server, line);
    }
    if (code) return fail(error, code);
    if (mode & COMMIT) {
        say(server, "COMMIT OF IT");
        if ((code = scripted(server, "commit", 0))) return fail(error, code);
        server->in_transaction = 0;
    }
    if (h->error_count) {
        ((Handle *)error)->code = 24381; /* error(s) in array DML */
        return WITH_INFO;
    }
    return OK;
}

int OCIDefineByPos2(void *statement, void **define, void *e, uint32_t position, void *value, int64_t size,
                    uint16_t type, void *null, uint32_t *length, uint16_t *rcode, uint32_t mode) {
    if (position <= MAX_COLUMNS)
        ((Handle *)statement)->defines[position - 1] = (Bind){value, size, type, null, length};
    *define = calloc(1, sizeof(Handle));
    return OK;
}

int OCIStmtFetch2(void *statement, void *e, uint32_t rows, uint16_t orientation, int32_t offset,
                  uint32_t mode) {
    Handle *h = statement;
    h->fetched = h->found;
    for (int row = 0; row < h->found; row++)
        for (uint32_t column = 0; column < h->columns; column++) {
            Bind *define = &h->defines[column];
            char *value = (char *)define->value + row * define->size;
            number(value, h->numbers[row * h->columns + column]);
            define->null[row] = 0;
            if (define->length) define->length[row] = 1 + *value;
        }
    h->found = 0;
    return NO_DATA;
}

int OCIParamGet(const void *handle, uint32_t type, void *e, void **parameter, uint32_t position) {
    if (type == 4) { /* of a statement: its column */
        *parameter = calloc(1, sizeof(Handle));
        return OK;
    }
    Handle *h = *parameter;
    h->code = last_statement->codes[position];
    h->offset = last_statement->offsets[position];
    return OK;
}

int OCIDescriptorFree(void *descriptor, uint32_t type) { return OK; }

int OCIErrorGet(void *handle, uint32_t record, char *state, int32_t *code, char *text, uint32_t size,
                uint32_t type) {
    *code = ((Handle *)handle)->code;
    snprintf(text, size, "ORA-%05d: as the test asked for", *code);
    return OK;
}

int OCITransCommit(void *service, void *error, uint32_t flags) {
    Handle *server = ((Handle *)service)->server;
    server->calls = 0;
    say(server, "COMMIT");
    int code = scripted(server, "commit", 0);
    if (code) return fail(error, code);
    server->in_transaction = 0;
    return OK;
}

int OCITransRollback(void *service, void *error, uint32_t flags) {
    Handle *server = ((Handle *)service)->server;
    server->calls = 0;
    if (server->asks_catalog) return server->asks_catalog = 0, OK;
    say(server, "ROLLBACK");
    int code = scripted(server, "rollback", 0);
    if (code) return fail(error, code);
    server->in_transaction = 0;
    return OK;
}
