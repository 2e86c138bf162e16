# Makefile - builds, checks and installs Heddle (GNU make 4.3). `make help` lists the targets.
#
# Sources are found, not listed: everything in src/ is the library, except src/cli (the program) and src/run
# (needs MPI). tests/unit/test_*.c make one program, tests/prop/*.c another, which has a name for each of them; every bench/*.c and
# fuzz/fuzz_*.c makes its own.
VERSION := 0.1.0

ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
B      ?= build
# The build whose objects of tests are linked: by default its own.
TESTS_OF ?= $(B)

# Debug builds also run the checks that cost time (the verifier after every pass). Asserts are always on.
# Sanitizers: lines for their reports, no more, take a fifth less to compile; what is described of every check would be
# relocated at every start, but for programs at a fixed address. WITHOUT=null,object-size,pointer-overflow leaves these checks
# out, and takes a quarter less to compile: what is used at a null pointer or past an object the address sanitizer finds, too. It
# is a build of its own.
ifdef SAN
B      := build/san$(if $(WITHOUT),_some)
CFLAGS := -O1 -g1
FIXED  := -no-pie
override CFLAGS += -DHEDDLE_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined \
  $(WITHOUT:%=-fno-sanitize=%) -fno-sanitize-recover=all
else ifdef DEBUG
B      := build/debug
CFLAGS := -O1 -g
override CFLAGS += -DHEDDLE_DEBUG
endif

WARN    := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes $(if $(WERROR),-Werror)
DEFINES := -D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L -DHEDDLE_VERSION='"$(VERSION)"'
# No contraction: the same numbers on every machine.
FLAGS    = -std=c11 -fPIC -ffp-contract=off -pthread -Isrc -Iinclude $(DEFINES) $(WARN) -MMD -MP $(CPPFLAGS) $(CFLAGS)
LIBS    := -lyaml -lz -lsqlite3 -lm -lpthread -ldl

ALL_SRC := $(sort $(wildcard src/*/*.c src/*/*/*.c))
CLI_SRC := $(filter src/cli/%,$(ALL_SRC))
HEADERS := $(wildcard include/*.h include/*/*.h)
LIB_SRC := $(filter-out src/cli/% src/run/%,$(ALL_SRC))
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)

UNIT_OBJ    := $(patsubst %.c,$(TESTS_OF)/obj/%.o,$(wildcard tests/unit/test_*.c))
HARNESS_OBJ := $(patsubst %.c,$(TESTS_OF)/obj/%.o,$(wildcard tests/*.c))
UNIT        := $(B)/tests/unit
PROP        := $(patsubst tests/prop/%.c,$(B)/tests/prop/%,$(wildcard tests/prop/*.c))
ONNX        := $(B)/tests/prop/check_onnx
PROP_OBJ    := $(patsubst $(B)/%,$(TESTS_OF)/obj/%.o,$(filter-out $(ONNX),$(PROP)))
BENCH       := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))
FUZZ        := $(patsubst fuzz/%.c,%,$(wildcard fuzz/fuzz_*.c))
GOLDEN      := $(addprefix tests/golden/,training links resident)

PROGRAM := $(if $(CLI_OBJ),$(B)/heddle)
LIB     := $(B)/libheddle.a

# Commands are shown in short; V=1 shows them whole.
Q   := $(if $(V),,@)
say  = $(if $(V),,@echo '$(1) $@')

MAKEFLAGS += -j$(shell nproc) --no-builtin-rules
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE all help deps programs check check-onnx check-format format analyze bench demo reproduce spreads fuzz install clean

# What joins the ranks of `heddle run`: only where there is an MPI, and nothing else needs it.
MPICC ?= $(shell command -v mpicc)
MPI   := $(if $(MPICC),$(B)/heddle-mpi.so)

all: $(LIB) $(B)/libheddle.so $(PROGRAM) $(MPI)

help:
	@echo 'make                 build/heddle, build/libheddle.a, build/libheddle.so'
	@echo 'make check           every test; the last line sums them up'
	@echo 'make check-onnx      the ONNX conformance cases'
	@echo 'make bench           measurements, printed and in build/bench.json'
	@echo 'make demo            plan, verify and simulate a GPT-2 for 16 GPUs'
	@echo 'make reproduce       the published figures beside ours'
	@echo 'make spreads         how far prices are from published measurements, for machine files'
	@echo 'make fuzz            every fuzzer for FUZZ_SECONDS=60 (needs clang)'
	@echo 'make analyze         warnings and static analyser of clang'
	@echo 'make format          clang-format on all sources; check-format only tells'
	@echo 'make install         to PREFIX=/usr/local, below DESTDIR'
	@echo 'make deps            install the packages that are missing'
	@echo 'Switches: V=1, DEBUG=1, SAN=1, WERROR=1, CC=clang B=build/clang'

# ---- packages ----------------------------------------------------------------------------------------

deps:
	@tools/deps $(CC)

# Asked once for every build folder, before the first compilation.
$(B)/deps-ok:
	@tools/deps $(CC)
	@mkdir -p $(@D) && touch $@

# ---- library and program -----------------------------------------------------------------------------

$(B)/obj/%.o: %.c Makefile | $(B)/deps-ok
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) -c $< -o $@

$(B)/obj/tests/%.o: FLAGS += -Itests
# Loops that the compiler must turn into vectors. None of this changes a number.
$(B)/obj/src/kernel/loops.o: FLAGS += $(if $(SAN),,-O3) -fno-math-errno -fno-trapping-math
# Where machines are installed is compiled in: `make install PREFIX=...` compiles it anew where that differs.
$(B)/obj/src/machine/load.o: DEFINES += -DHEDDLE_PREFIX='"$(PREFIX)"'
$(B)/obj/src/machine/load.o: $(B)/prefix
# The assembler puts these files into the object, unseen by -MMD.
$(B)/obj/src/machine/presets.o $(B)/fuzz/obj/src/machine/presets.o: $(wildcard machines/*.yaml)

$(B)/obj/src/export/helpers.o $(B)/fuzz/obj/src/export/helpers.o: src/export/pytorch.py src/export/measure.py

# The list of members is part of what the archive depends on: a source that is deleted must leave it.
$(LIB): $(LIB_OBJ) $(B)/sources
	@rm -f $@
	$(call say,AR)
	$(Q)ar rcs $@ $(LIB_OBJ)

$(B)/sources: FORCE
	@mkdir -p $(@D); echo '$(ALL_SRC)' | cmp -s - $@ || echo '$(ALL_SRC)' > $@
$(B)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@
FORCE:

# Only the names of include/heddle.h leave the shared library.
$(B)/libheddle.so: $(LIB_OBJ) $(B)/sources tools/heddle.map
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libheddle.so -Wl,--version-script=tools/heddle.map \
	  -o $@ $(LIB_OBJ) $(LIBS)

$(B)/heddle: $(CLI_OBJ) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/heddle-mpi.so: src/run/mpi.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,MPICC)
	$(Q)$(MPICC) -std=c11 -fPIC -Iinclude $(DEFINES) $(WARN) $(CFLAGS) -shared -o $@ $<

# That transport with faults, for tests.
$(B)/tests/faulty.so: tests/transport/faulty.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 -fPIC -Iinclude $(DEFINES) $(WARN) $(CFLAGS) -shared -o $@ $< -ldl

# Operators from outside, for tests: the example, and others that are wrong. They are not linked with the library.
OPERATORS := $(B)/tests/operators.so $(B)/tests/operators_wrong.so
$(B)/tests/operators.so: examples/operators.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 -fPIC -Iinclude $(DEFINES) -DROWS_ONLY $(WARN) $(CFLAGS) -shared -o $@ $< -lm
$(B)/tests/operators_wrong.so: tests/operators/wrong.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 -fPIC -Iinclude $(DEFINES) $(WARN) $(CFLAGS) -shared -o $@ $< -lm

# ---- tests -------------------------------------------------------------------------------------------

$(B)/tests/harness.a: $(HARNESS_OBJ)
	@mkdir -p $(@D); rm -f $@
	$(call say,AR)
	$(Q)ar rcs $@ $^

$(B)/tests/unit: $(UNIT_OBJ) $(B)/tests/harness.a $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

# One program is linked, not forty: its name says which file's tests it runs. What checks ONNX has a main of its own.
$(B)/tests/props: $(PROP_OBJ) $(B)/tests/harness.a $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)
$(filter-out $(ONNX),$(PROP)): $(B)/tests/props
	@mkdir -p $(@D) && ln -f $< $@
$(ONNX): $(TESTS_OF)/obj/tests/prop/check_onnx.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

# A short run of a fuzzer without libFuzzer: its corpus and mutations of it.
$(B)/tests/fuzz/%: $(B)/obj/fuzz/%.o $(B)/obj/fuzz/driver.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

# What takes longest begins first, some of it in parts.
LONG  := $(addprefix $(B)/tests/prop/,search bounds export measure splits mutants space synthesis align plans parts exhaustive)
PARTS  = $(foreach k,1 2 3,'$(UNIT) PART=$k/3') $(foreach k,1 2 3 4,'tests/golden/run PART=$k/4')
programs: all $(if $(MPI),$(B)/tests/faulty.so) $(OPERATORS) $(UNIT) $(PROP) $(FUZZ:%=$(B)/tests/fuzz/%)
check: programs
	@BUILD=$(B) HEDDLE=$(PROGRAM) tests/check $(LONG) $(PARTS) $(GOLDEN) tools/check-layers $(filter-out $(LONG),$(PROP)) \
	  $(FUZZ:%=$(B)/tests/fuzz/%)

# Programs beside the build that others keep: they find the build in $BUILD and the program in $HEDDLE.
check-onnx: all
	@BUILD=$(B) HEDDLE=$(PROGRAM) tools/check-onnx
demo: all
	@BUILD=$(B) HEDDLE=$(PROGRAM) tools/demo
reproduce: $(B)/reproduce
	@$(B)/reproduce

$(B)/bench/%: $(B)/obj/bench/%.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

REPRODUCE_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard bench/reproduce/*.c))
$(B)/reproduce: $(REPRODUCE_OBJ) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)

# How far published measurements lie from prices, as sections for machine files.
SPREADS_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard bench/spreads/*.c))
$(B)/spreads: $(SPREADS_OBJ) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(FIXED) $(LDFLAGS) -o $@ $^ $(LIBS)
spreads: $(B)/spreads
	@$(B)/spreads

bench: all $(BENCH)
	@set -e; for b in $(BENCH); do BUILD=$(B) HEDDLE=$(PROGRAM) $$b; done

# ---- fuzzers: clang's libFuzzer over a library compiled for it ---------------------------------------

FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_SAN     := address,undefined
FUZZ_OBJ     := $(LIB_SRC:%.c=$(B)/fuzz/obj/%.o)

$(B)/fuzz/deps-ok:
	@tools/deps $(CC) fuzz
	@mkdir -p $(@D) && touch $@

$(B)/fuzz/obj/%.o: %.c Makefile | $(B)/fuzz/deps-ok
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) $(FLAGS) -O1 -DHEDDLE_DEBUG -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -fno-sanitize-recover=all -c $< -o $@

$(B)/fuzz/fuzz_%: $(B)/fuzz/obj/fuzz/fuzz_%.o $(FUZZ_OBJ)
	$(call say,LD)
	$(Q)$(FUZZ_CC) -g -fsanitize=fuzzer,$(FUZZ_SAN) -o $@ $^ $(LIBS)

# Findings are left in build/fuzz; the corpus that grows there is kept between runs.
fuzz: $(FUZZ:%=$(B)/fuzz/%)
	@for f in $(FUZZ); do n=$${f#fuzz_}; mkdir -p $(B)/fuzz/corpus/$$n; echo "== $$n"; \
	  $(B)/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=$(B)/fuzz/$$n- \
	    $(B)/fuzz/corpus/$$n $$(ls -d fuzz/corpus/$$n 2>/dev/null) || exit 1; done

# ---- sources -----------------------------------------------------------------------------------------

TEXTS := $(HEADERS) $(wildcard src/*/*.[ch] src/*/*/*.[ch] tests/*.[ch] tests/*/*.[ch] bench/*.[ch] bench/*/*.[ch] fuzz/*.[ch])

format:
	@clang-format -i $(TEXTS)
check-format:
	@clang-format --dry-run -Werror $(TEXTS)

# What clang says: its warnings of everything that is compiled, and in the same pass what its static analyser finds in src/.
# (By `clang --analyze`, which looks for the same, there would be no warnings.)
ANALYZE_CC ?= clang
CHECKERS   := core apiModeling unix deadcode nullability.NullPassedToNonnull nullability.NullReturnedFromNonnull \
  $(addprefix security.insecureAPI.,UncheckedReturn getpw gets mktemp mkstemp vfork)
ANALYZE_FLAGS := -analyze -setup-static-analyzer -analyzer-opt-analyze-nested-blocks -analyzer-output=text -analyzer-werror \
  $(CHECKERS:%=-analyzer-checker=%)
# A quarter of clang's limit on the states of a function: a quarter of the time. Less makes it see faults that are none.
# Loops are gone through twice in place of four times: half of what is left. Only small functions are looked at within their
# callers (shallow): two thirds of that.
ANALYZE_FLAGS += -analyzer-config max-nodes=56250,mode=shallow -analyzer-max-loop 2
$(B)/analyze/src/%: FLAGS += $(addprefix -Xclang ,$(ANALYZE_FLAGS))
$(B)/analyze/tests/%: FLAGS += -Itests
$(B)/analyze/%: %.c Makefile
	@mkdir -p $(@D)
	@$(ANALYZE_CC) -fsyntax-only $(FLAGS) -MF $@.d -MT $@ $<
	@touch $@
ANALYZE := $(patsubst %.c,$(B)/analyze/%,$(filter-out src/run/%,$(ALL_SRC)) \
  $(wildcard tests/*.c tests/unit/*.c tests/prop/*.c bench/*.c bench/*/*.c fuzz/*.c examples/*.c))
analyze: $(ANALYZE)

# ---- installation ------------------------------------------------------------------------------------

TO := $(DESTDIR)$(PREFIX)

define PKG_CONFIG
prefix=$(PREFIX)
libdir=$${prefix}/lib
includedir=$${prefix}/include

Name: heddle
Description: Plans, simulates and verifies distributed training
Version: $(VERSION)
Libs: -L$${libdir} -lheddle
Libs.private: $(LIBS)
Cflags: -I$${includedir}
endef

install: all
	install -d $(TO)/bin $(TO)/lib/pkgconfig $(TO)/include/heddle $(TO)/share/heddle/machines \
	  $(TO)/share/bash-completion/completions
	$(if $(PROGRAM),install $(PROGRAM) $(TO)/bin)
	install -m 644 $(LIB) $(B)/libheddle.so $(MPI) $(TO)/lib
	install -m 644 include/heddle.h $(TO)/include
	install -m 644 $(wildcard include/heddle/*.h) $(TO)/include/heddle
	install -m 644 $(wildcard machines/*) $(TO)/share/heddle/machines
	install -m 644 tools/completion.bash $(TO)/share/bash-completion/completions/heddle
	$(file >$(B)/heddle.pc,$(PKG_CONFIG))
	install -m 644 $(B)/heddle.pc $(TO)/lib/pkgconfig

clean:
	rm -rf $(B)

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(UNIT_OBJ) $(HARNESS_OBJ) $(FUZZ_OBJ) $(REPRODUCE_OBJ) $(SPREADS_OBJ))
-include $(wildcard $(B)/obj/tests/prop/*.d $(B)/obj/bench/*.d $(B)/obj/fuzz/*.d $(B)/fuzz/obj/fuzz/*.d)
-include $(ANALYZE:%=%.d)
