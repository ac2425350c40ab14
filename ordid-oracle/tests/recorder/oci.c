/* A recorder in the place of Oracle's client library: what ODPI-C calls is written to a log, and
 * nothing more. There is no database behind it: it shows what a program sends, not what Oracle would
 * say. The errors that it answers with are those that the test asks for.
 *
 * The connect string is the path of the log. "<log>.script" may hold lines
 *     refuse <bytes in hex> <code>    a row with this RAW fails in batch mode
 *     execute <code> <times>          statements with an array fail; without a number, every one
 *     commit <code>                   COMMIT fails
 *
 * Signatures: Oracle Call Interface Programmer's Guide; struct layouts are the recorder's own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, WITH_INFO = 1, FAILED = -1 };
enum { UTF8 = 873, MAX_BINDS = 32, MAX_ERRORS = 1000, BATCH_ERRORS = 0x80 };

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
    int failures;      /* of a server: how often the script was asked for one that ends */
    char *log;         /* of a server; of a service and a session its server's */
    int in_transaction;
    struct Handle *server;
    char *sql;         /* of a statement */
    int kind, bind_count;
    Bind binds[MAX_BINDS];
    int error_count, codes[MAX_ERRORS], offsets[MAX_ERRORS];
} Handle;

static __thread void *thread_value;
static __thread Handle *last_statement;
static char names[MAX_BINDS][4];

static void say(Handle *server, const char *text) {
    FILE *log = fopen(server->log, "a");
    fprintf(log, "%s\n", text);
    fclose(log);
}

/* Returns the code that the script has for this, or 0; also where it has been the case so often. */
static int scripted(Handle *server, const char *what) {
    char path[4096], line[256];
    int code = 0, times = 0;
    snprintf(path, sizeof path, "%s.script", server->log);
    FILE *script = fopen(path, "r");
    if (!script) return 0;
    while (fgets(line, sizeof line, script))
        if (!strncmp(line, what, strlen(what)) && line[strlen(what)] == ' ')
            sscanf(line + strlen(what) + 1, "%d %d", &code, &times);
    fclose(script);
    return times && ++server->failures > times ? 0 : code;
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
    if (type == 3 && attribute == 7)                                              /* SESSION */
        ((Handle *)value)->server = ((Handle *)handle)->server;
    return OK;
}

int OCIAttrGet(const void *handle, uint32_t type, void *value, uint32_t *size, uint32_t attribute,
               void *e) {
    const Handle *h = handle;
    switch (attribute) {
        case 31: case 262: *(uint16_t *)value = UTF8; return OK;                  /* CHARSET_ID */
        case 24: *(uint16_t *)value = h->kind; return OK;                         /* STMT_TYPE */
        case 190: *(uint32_t *)value = h->bind_count; return OK;                  /* BIND_COUNT */
        case 73: *(uint32_t *)value = h->error_count; return OK;                  /* NUM_DML_ERRORS */
        case 74: *(int32_t *)value = h->offset; return OK;                        /* DML_ROW_OFFSET */
        case 129: *(uint16_t *)value = 0; return OK;                              /* PARSE_ERROR_OFFSET */
        case 143: *(uint32_t *)value = 1; return OK;                              /* SERVER_STATUS: normal */
        case 457: *(uint64_t *)value = 0; return OK;                              /* UB8_ROW_COUNT */
        case 484: *(int32_t *)value = h->server->in_transaction; return OK;       /* TRANSACTION_IN_PROGRESS */
        default: return OK;
    }
}

int OCIServerAttach(void *server, void *e, const char *link, int32_t length, uint32_t mode) {
    ((Handle *)server)->log = strndup(link, length);
    return OK;
}
int OCIServerDetach(void *server, void *e, uint32_t mode) { return OK; }
int OCISessionBegin(void *service, void *e, void *session, uint32_t kind, uint32_t mode) { return OK; }
int OCISessionEnd(void *service, void *e, void *session, uint32_t mode) { return OK; }

int OCIStmtPrepare2(void *service, void **statement, void *e, const char *sql, uint32_t length,
                    const char *key, uint32_t key_length, uint32_t language, uint32_t mode) {
    Handle *h = calloc(1, sizeof(Handle));
    h->server = ((Handle *)service)->server;
    h->sql = strndup(sql, length);
    if (!strncmp(h->sql, "INSERT", 6)) h->kind = 4;
    for (const char *c = h->sql; h->kind == 4 && *c; c++)
        if (*c == ':') h->bind_count++;
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
    char line[8192], refused[600];
    say(server, h->sql);
    last_statement = h;
    h->error_count = 0;
    if (h->kind != 4) return OK;
    server->in_transaction = 1;
    int code = scripted(server, "execute");
    for (uint32_t row = 0; row < rows; row++) {
        char *end = line;
        end += sprintf(end, " ");
        for (int column = 0; column < h->bind_count; column++) {
            Bind *b = &h->binds[column];
            char *value = b->value + row * b->size;
            char text[512] = "NULL";
            if (!b->null || b->null[row] != -1)
                hex(text, value, b->length ? b->length[row] : b->size);
            end += sprintf(end, " %u:%s", b->type, text);
            snprintf(refused, sizeof refused, "refuse %s", text);
            int of_row = column == 0 ? scripted(server, refused) : 0;
            if (of_row && (mode & BATCH_ERRORS)) {
                h->codes[h->error_count] = of_row;
                h->offsets[h->error_count++] = row;
            }
        }
        say(server, line);
    }
    if (code) return fail(error, code);
    if (h->error_count) {
        ((Handle *)error)->code = 24381; /* error(s) in array DML */
        return WITH_INFO;
    }
    return OK;
}

int OCIParamGet(const void *handle, uint32_t type, void *e, void **parameter, uint32_t position) {
    Handle *h = *parameter;
    h->code = last_statement->codes[position];
    h->offset = last_statement->offsets[position];
    return OK;
}

int OCIErrorGet(void *handle, uint32_t record, char *state, int32_t *code, char *text, uint32_t size,
                uint32_t type) {
    *code = ((Handle *)handle)->code;
    snprintf(text, size, "ORA-%05d: as the test asked for", *code);
    return OK;
}

int OCITransCommit(void *service, void *error, uint32_t flags) {
    Handle *server = ((Handle *)service)->server;
    say(server, "COMMIT");
    int code = scripted(server, "commit");
    if (code) return fail(error, code);
    server->in_transaction = 0;
    return OK;
}

int OCITransRollback(void *service, void *error, uint32_t flags) {
    Handle *server = ((Handle *)service)->server;
    say(server, "ROLLBACK");
    server->in_transaction = 0;
    return OK;
}
